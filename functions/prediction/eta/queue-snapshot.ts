import { createSlots } from './slots.ts'

export type LaneSum = { lane: number; jobs: number; predictedMs: number }

/** Other organisations with about the same waiting work for their weight, together. */
export type OthersSum = {
  jobs: number
  predictedMs: number
  weight: number
  /** How many slots their jobs have kept busy recently: they will probably submit as much again. */
  load: number
  /** Virtual time: what they have been given since the snapshot was taken, divided by their weight. */
  timeMs: number
}

/** The queue as one organisation sees it. */
export type QueueSnapshot = {
  /** Of the live workers. */
  slots: number
  /** What each running job of any organisation will probably take yet. */
  runningRemainingMs: readonly number[]
  /** The organisation's own ready jobs, the lowest lane first. */
  lanes: readonly LaneSum[]
  weight: number
  timeMs: number
  others: readonly OthersSum[]
  /** Of the organisation's work that is dispatched, what goes to its oldest jobs. */
  ageShare: number
  /** What the organisation keeps submitting, by how many slots the jobs of a lane have filled lately. */
  recent: readonly { lane: number; load: number }[]
  /**
   * How many times as long as predicted work takes: predictions are medians, and the mean, which sums are made of, lies above.
   * `predictedMs` is without it.
   */
  stretch: number
}

/** What of their work other organisations have been given when the organisation reaches this virtual time. */
export const givenToOthers = (
  others: readonly OthersSum[],
  timeMs: number,
  waitMs = 0,
): { jobs: number; ms: number } => {
  let jobs = 0
  let ms = 0
  for (const one of others) {
    const dueMs = Math.max(0, timeMs - one.timeMs) * one.weight
    ms += Math.min(one.predictedMs + one.load * waitMs, dueMs)
    jobs += one.predictedMs > dueMs ? (one.jobs * dueMs) / one.predictedMs : one.jobs
  }
  return { jobs, ms }
}

/** Beyond so many starts one by one, jobs are taken for water. */
const MOST_STARTS = 1_000

/**
 * What a snapshot has become after some time: each slot that is free takes the next job of whose turn it is. So it is with no
 * time gone, too: a slot is not free for the next one to come if somebody waits for it.
 */
export const advanceQueue = (snapshot: QueueSnapshot, ms: number): QueueSnapshot => {
  const slots = createSlots(snapshot.slots, snapshot.runningRemainingMs)
  const own = { ...snapshot, lanes: snapshot.lanes.map((one) => ({ ...one })) }
  const others = snapshot.others.map((one) => ({ ...one, lanes: one.jobs > 0 ? [{ ...one, lane: 0 }] : [] }))
  const all: Member[] = [own, ...others]
  for (let starts = 0; starts < MOST_STARTS && slots.soonest() <= ms; starts++) {
    const next = all.filter(({ lanes }) => lanes.length > 0).reduce<Member | undefined>(earlier, undefined)
    if (!next) break
    slots.place(takeJob(next) * snapshot.stretch)
  }
  takeWork(all, slots.idleUntil(ms) / snapshot.stretch)
  forgetIdleTime(all)
  return {
    ...snapshot,
    lanes: own.lanes,
    timeMs: own.timeMs,
    others: others.map(({ lanes: [left], ...one }) => ({
      ...one,
      jobs: left?.jobs ?? 0,
      predictedMs: left?.predictedMs ?? 0,
    })),
    runningRemainingMs: slots.busyAfter(ms),
  }
}

/** The organisation, or others together, with what of their work is left. */
type Member = { weight: number; timeMs: number; lanes: LaneSum[] }

const earlier = (first: Member | undefined, one: Member): Member =>
  first && first.timeMs <= one.timeMs ? first : one

/** Whoever begins to wait starts where the others are: having been idle earns no credit. */
const forgetIdleTime = (members: readonly Member[]): void => {
  const waiting = members.filter(({ lanes }) => lanes.length > 0)
  const clockMs = Math.min(...waiting.map(({ timeMs }) => timeMs))
  if (waiting.length === 0) return
  for (const one of members) one.timeMs = Math.max(one.timeMs, one.lanes.length > 0 ? 0 : clockMs)
}

/** The next job of the lowest lane. */
const takeJob = (member: Member): number => {
  const first = member.lanes[0] as LaneSum
  const jobMs = first.predictedMs / Math.max(first.jobs, 1)
  first.jobs--
  first.predictedMs -= jobMs
  if (first.jobs < 0.5) member.lanes.shift()
  member.timeMs += jobMs / member.weight
  return jobMs
}

/** So much work of all, by weight. What one of them has not got goes to the rest. */
const takeWork = (members: readonly Member[], ms: number): void => {
  let rest = ms
  for (let waiting = [...members]; rest > 0.001; ) {
    waiting = waiting.filter(({ lanes }) => lanes.length > 0)
    if (waiting.length === 0) return
    const weights = waiting.reduce((sum, { weight }) => sum + weight, 0)
    const before = rest
    for (const one of waiting) rest -= takeFrom(one, (before * one.weight) / weights)
  }
}

const takeFrom = (member: Member, ms: number): number => {
  let rest = ms
  while (rest > 0) {
    const first = member.lanes[0]
    if (!first) break
    const doneMs = Math.min(rest, first.predictedMs)
    rest -= doneMs
    if (doneMs === first.predictedMs) {
      member.lanes.shift()
      continue
    }
    first.jobs *= 1 - doneMs / first.predictedMs
    first.predictedMs -= doneMs
  }
  member.timeMs += (ms - rest) / member.weight
  return ms - rest
}

/** With jobs that the organisation has just submitted. */
export const addToQueue = (
  snapshot: QueueSnapshot,
  jobs: readonly { lane: number; p50Ms: number }[],
): QueueSnapshot => {
  const lanes = new Map(snapshot.lanes.map((one) => [one.lane, { ...one }]))
  for (const { lane, p50Ms } of jobs) {
    const sum = lanes.get(lane) ?? { lane, jobs: 0, predictedMs: 0 }
    sum.jobs++
    sum.predictedMs += p50Ms
    lanes.set(lane, sum)
  }
  return { ...snapshot, lanes: [...lanes.values()].sort((a, b) => a.lane - b.lane) }
}
