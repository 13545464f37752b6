import type { ClaimedJob } from '../db/queries/exchange-news.ts'
import { endIsolation } from '../db/queries/isolation.ts'
import { claimSuspect, readLoneJob } from '../db/queries/lone-claim.ts'
import type { Run } from '../db/query.ts'
import type { Capacity } from './capacity.ts'
import { LEASE_SECONDS } from './lease-book.ts'

/**
 * A worker's turn to run suspects: jobs whose workers were lost while they ran beside others. Each runs with nothing
 * else in the worker, so that its next loss has one possible cause.
 *
 *   off ──begin──▶ draining ──nothing in hand──▶ a suspect runs ──ended, within the turn──▶ the next one
 *    ▲                │                              │
 *    └── not asked ───┴─── no suspect is left, ──────┘
 *        any more         or the turn is over
 *
 * Nothing else is claimed until the turn is over. It is short, and then other jobs have theirs: a worker that is the
 * only one alternates. The leader asks every second for as long as there are suspects; a worker that does not hear it
 * any more stops draining.
 */
export type Isolation = {
  /** The leader asks for it. */
  begin(): void
  isOn(): boolean
  /** For a worker with nothing in hand: the next suspect. Undefined: the turn is over. */
  next(): Promise<ClaimedJob | undefined>
}

/** Suspects that are short follow each other for so long. One that has begun is not cut off. */
const TURN_MS = 5_000
/** Longer than it takes another leader to take over. */
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
    const [row] = await run(
      claimSuspect({ workerId, leaseSeconds: LEASE_SECONDS, types, cpuUnits, memoryMb }),
    )
    return row && readLoneJob(row)
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
