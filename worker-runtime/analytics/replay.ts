/**
 * Runs past attempts again, in another order, on the slots that there were. An attempt keeps when it could have started and
 * how long it ran; when it starts is up to the order: whenever a slot is free, the first of those that are ready gets it.
 *
 * Run in the order in which they really started, on the slots that there really were, they start when they really did. How
 * much the two differ is what a replay cannot know (claims, pauses, resources), and it is the same in every order: so orders
 * are compared by their replays, and not a replay with what was.
 */
import { createEventHeap } from '../backtest/event-heap.ts'

export type PastAttempt = { readyMs: number; startMs: number; endMs: number }

/** How many slots there were from then on, oldest first; before the first, as many as at most were busy at a time. */
export type SlotChange = { atMs: number; slots: number }

export type ReplayOrder = 'as-run' | 'fifo'

/** How long each would have waited, in milliseconds. Of those that became ready at the same time, the first comes first. */
export const replay = (
  attempts: readonly PastAttempt[],
  changes: readonly SlotChange[],
  order: ReplayOrder,
): Float64Array => {
  const arrivals = attempts.map((_, n) => n).sort((a, b) => at(attempts, a).readyMs - at(attempts, b).readyMs)
  const ready = createEventHeap<number>()
  const running = createEventHeap<number>()
  const waits = new Float64Array(attempts.length)
  let slots = peakOf(attempts)
  let arrived = 0
  let changed = 0

  for (;;) {
    const arrivalMs = attempts[arrivals[arrived] ?? -1]?.readyMs ?? Infinity
    const changeMs = changes[changed]?.atMs ?? Infinity
    const nowMs = Math.min(arrivalMs, running.peekAt(), ready.size() > 0 ? changeMs : Infinity)
    if (nowMs === Infinity) return waits
    while ((changes[changed]?.atMs ?? Infinity) <= nowMs) slots = at(changes, changed++).slots
    while (running.peekAt() <= nowMs) running.pop()
    for (; (attempts[arrivals[arrived] ?? -1]?.readyMs ?? Infinity) <= nowMs; arrived++) {
      const n = at(arrivals, arrived)
      const { readyMs, startMs } = at(attempts, n)
      ready.push(order === 'fifo' ? readyMs : startMs, n)
    }
    while (ready.size() > 0 && running.size() < Math.max(slots, 1)) {
      const n = ready.pop()
      const { readyMs, startMs, endMs } = at(attempts, n)
      waits[n] = nowMs - readyMs
      running.push(nowMs + Math.max(0, endMs - startMs), n)
    }
  }
}

/** How many ran at the same time, at most. */
const peakOf = (attempts: readonly PastAttempt[]): number => {
  const starts = Float64Array.from(attempts, ({ startMs }) => startMs).sort()
  const ends = Float64Array.from(attempts, ({ endMs }) => endMs).sort()
  let ended = 0
  let peak = 0
  for (const [n, startMs] of starts.entries()) {
    while (ended < ends.length && (ends[ended] ?? 0) <= startMs) ended++
    peak = Math.max(peak, n + 1 - ended)
  }
  return peak
}

const at = <Item>(items: readonly Item[], n: number): Item => items[n] as Item
