/** How long after the last sign of life the stream is still read at the quickest pace. */
const HOT_MS = 3_000
const QUICKEST_MS = 100
const QUIET_MS = 2_000
const ASLEEP_AFTER_MS = 60_000
/** The slowest pace bounds how long somebody who was removed still listens, should nobody tell the object of it. */
const ASLEEP_MS = 5_000

/** Between two reads a moment must pass, however often the object is nudged: what commits meanwhile goes in the next. */
export const REST_MS = 25

/** Up to this a timer waits, and the object stays in memory; beyond it an alarm does, and it may hibernate. */
export const LONGEST_TIMER_MS = QUIET_MS - 1

/** When to read again if nobody nudges, by how long nothing has happened: each second that it is quiet doubles it. */
export const paceMs = (quietMs: number): number => {
  if (quietMs < HOT_MS) return QUICKEST_MS
  if (quietMs >= ASLEEP_AFTER_MS) return ASLEEP_MS
  return Math.min(QUIET_MS, QUICKEST_MS * 2 ** Math.ceil((quietMs - HOT_MS + 1) / 1_000))
}
