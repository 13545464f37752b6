import type { CapacityRow, EndedAttemptRow, GainRow } from '../../db/queries/analytics-gain.ts'
import { replay, type SlotChange } from './replay.ts'

const FIVE_MINUTES_MS = 300_000

/**
 * What the order was worth, by organisation and the five minutes in which jobs ended: how long they waited, and how long they
 * would have, first in, first out. All organisations share the slots, and so are replayed together. `breathe` comes between
 * two replays: 10,000 attempts take some 20 ms each.
 */
export const weighOrder = async (
  rows: readonly EndedAttemptRow[],
  capacity: CapacityRow,
  breathe: () => Promise<void>,
): Promise<GainRow[]> => {
  const attempts = rows.map(({ ready_ms, start_ms, end_ms }) => ({
    readyMs: ready_ms,
    startMs: start_ms,
    endMs: end_ms,
  }))
  const slots = slotsLeft(capacity)
  const asRun = replay(attempts, slots, 'as-run')
  await breathe()
  const fifo = replay(attempts, slots, 'fifo')
  await breathe()
  const gains = new Map<string, GainRow>()
  for (const [n, row] of rows.entries()) {
    if (!row.first) continue
    const at_ms = Math.floor(row.end_ms / FIVE_MINUTES_MS) * FIVE_MINUTES_MS
    const key = `${row.org_id} ${at_ms}`
    const gain = gains.get(key) ?? emptyGain(row.org_id, at_ms)
    const waitMs = row.start_ms - row.ready_ms
    const fifoMs = Math.max(0, waitMs + (fifo[n] ?? 0) - (asRun[n] ?? 0))
    gain.jobs++
    gain.wait_ms += waitMs
    gain.fifo_wait_ms += fifoMs
    gain.max_wait_ms = Math.max(gain.max_wait_ms, waitMs)
    gain.fifo_max_wait_ms = Math.max(gain.fifo_max_wait_ms, fifoMs)
    gains.set(key, gain)
  }
  return [...gains.values()]
}

const emptyGain = (org_id: string, at_ms: number): GainRow => ({
  org_id,
  at_ms,
  jobs: 0,
  wait_ms: 0,
  fifo_wait_ms: 0,
  max_wait_ms: 0,
  fifo_max_wait_ms: 0,
})

/** Without those in which jobs run that have not ended, and so are not among the attempts. */
const slotsLeft = ({ slots, running_ms }: CapacityRow): SlotChange[] => {
  const [first] = slots
  if (!first) return []
  const changes = [...slots.map(({ at_ms, slots: count }) => ({ atMs: at_ms, count, taken: 0 }))]
  const taken = running_ms.map((atMs) => ({ atMs, count: undefined, taken: 1 }))
  let count = first.slots
  let busy = 0
  return [...changes, ...taken]
    .sort((a, b) => a.atMs - b.atMs)
    .map((change) => {
      count = change.count ?? count
      busy += change.taken
      return { atMs: change.atMs, slots: count - busy }
    })
}
