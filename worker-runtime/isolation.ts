import type { Run } from '../db/query.ts'
import { type ClaimedJob, claimSuspect, readSuspect } from '../db/queue/exchange.ts'
import { endIsolation } from '../db/queue/upkeep.ts'
import type { Capacity } from './capacity.ts'
import { LEASE_SECONDS } from './lease-book.ts'

/**
 * A worker's turn to run suspects: jobs whose workers were lost while they ran alongside others. Each runs
 * alone in the worker, so that its next loss has only one possible cause.
 *
 *   off ──begin──▶ draining ──nothing in hand──▶ a suspect runs ──ended, within the turn──▶ the next one
 *    ▲                │                              │
 *    └── not asked ───┴─── no suspect is left, ──────┘
 *        any more         or the turn is over
 *
 * The worker claims nothing else until the turn is over. The turn is short, and other jobs run after it, so a
 * single worker alternates. The leader asks every second for as long as there are suspects; a worker that is
 * no longer asked stops draining.
 */
export type Isolation = {
  /** Called when the leader asks the worker to isolate. */
  begin(): void
  isOn(): boolean
  /** The next suspect for a worker that holds no jobs, or undefined if the turn is over. */
  next(): Promise<ClaimedJob | undefined>
}

/** How long a worker keeps starting suspects. One that has started is not interrupted. */
const TURN_MS = 5_000
/** Longer than it takes a new leader to take over. */
const ASKED_MS = 10_000

export const createIsolation = (options: {
  run: Run
  workerId: string
  types: readonly string[]
  capacity: Pick<Capacity, 'cpuUnits' | 'memoryMb'>
  now: () => number
}): Isolation => {
  const { run, workerId, types, now } = options
  const { cpuUnits, memoryMb } = options.capacity
  let askedAtMs = Number.NEGATIVE_INFINITY
  let endsAtMs: number | undefined

  const claim = async (): Promise<ClaimedJob | undefined> => {
    endsAtMs ??= now() + TURN_MS
    if (now() >= endsAtMs) return undefined
    return readSuspect(
      await run(claimSuspect({ workerId, leaseSeconds: LEASE_SECONDS, types, cpuUnits, memoryMb })),
    )
  }

  return {
    begin: () => {
      askedAtMs = now()
    },
    isOn: () => endsAtMs !== undefined || now() - askedAtMs < ASKED_MS,
    next: async () => {
      const job = await claim()
      if (job) return job
      await run(endIsolation(workerId))
      askedAtMs = Number.NEGATIVE_INFINITY
      endsAtMs = undefined
      return undefined
    },
  }
}
