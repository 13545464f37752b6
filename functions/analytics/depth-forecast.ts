/**
 * How deep a queue will be: a fluid run through the minutes ahead. Work flows in as it is expected, and out as fast as slots
 * serve it; a job takes one slot at most, and a slot that two queues want is shared by how much work each has. So a backlog is
 * worked off, and a queue that keeps up settles where Little's law has it: rate × runtime jobs.
 *
 * Jobs whose time is known are no part of the rate. The 90th percentile is the same run with as many arrivals, from now to each
 * minute, as 90 % of such arrivals have at most, and at least the spread of what is there.
 */

/** What comes that nobody has announced. Another source of it (a model of load) takes this shape, too. */
export type Arrivals = {
  /** Expected in each of the minutes ahead. */
  jobsPerMinute: readonly number[]
  /** Variance to mean of jobs a minute: 1 if they come singly and by chance, more in bursts. */
  dispersion: number
}

export type DepthNow = {
  /** Ready and running, and the predicted work that is left of them. */
  jobs: number
  workMs: number
  /** Of the live workers, for all organisations; 0 while the queue is paused. */
  slots: number
  /** How many times as long as predicted work takes. */
  stretch: number
  /** Work of a job that comes. */
  meanMs: number
  /** What the others have queued, and how many slots their jobs keep busy. */
  others: { workMs: number; load: number }
  arrivals: Arrivals
  /** Jobs that become ready at a known time: delayed ones, ticks of schedules. */
  announced: readonly { inMs: number; workMs: number }[]
}

export type DepthAhead = { inMs: number; jobs: number; jobsP90: number; workMs: number }

const STEP_MS = 15_000
const MINUTE_MS = 60_000
/** Of the normal distribution. */
const Z90 = 1.2816

export const forecastDepth = (now: DepthNow, minutes: number): DepthAhead[] => {
  const mean = flow(now, minutes, (expected) => expected)
  const high = flow(
    now,
    minutes,
    (expected) => expected + Z90 * Math.sqrt(now.arrivals.dispersion * expected),
  )
  return mean.map(({ jobs, workMs }, n) => ({
    inMs: (n + 1) * MINUTE_MS,
    jobs,
    jobsP90: Math.max(high[n]?.jobs ?? jobs, jobs + Z90 * Math.sqrt(jobs)),
    workMs,
  }))
}

type Level = { jobs: number; workMs: number }

/** `upTo` says how many arrivals there are by a time at which so many are expected. */
const flow = (now: DepthNow, minutes: number, upTo: (expected: number) => number): Level[] => {
  const { slots, stretch, meanMs, arrivals } = now
  const announced = [...now.announced].sort((a, b) => a.inMs - b.inMs)
  const levels: Level[] = []
  let { jobs, workMs } = now
  let othersMs = now.others.workMs
  let expected = 0
  let next = 0
  for (let atMs = STEP_MS; atMs <= minutes * MINUTE_MS; atMs += STEP_MS) {
    const perMinute = arrivals.jobsPerMinute[Math.ceil(atMs / MINUTE_MS) - 1] ?? 0
    const before = upTo(expected)
    expected += (perMinute * STEP_MS) / MINUTE_MS
    const came = upTo(expected) - before
    jobs += came
    workMs += came * meanMs
    for (; (announced[next]?.inMs ?? Number.POSITIVE_INFINITY) <= atMs; next++) {
      jobs++
      workMs += announced[next]?.workMs ?? meanMs
    }
    othersMs += now.others.load * STEP_MS
    const share = workMs > 0 ? workMs / (workMs + othersMs) : 0
    const leftByOthers = Math.max(0, slots - othersMs / STEP_MS)
    const busy = Math.min(jobs, Math.max(slots * share, leftByOthers))
    const doneMs = Math.min(workMs, (busy * STEP_MS) / stretch)
    jobs = workMs > doneMs ? jobs * (1 - doneMs / workMs) : 0
    workMs -= doneMs
    othersMs = Math.max(0, othersMs - (slots - busy) * STEP_MS)
    if (atMs % MINUTE_MS === 0) levels.push({ jobs, workMs })
  }
  return levels
}

export type ArrivalHistory = {
  /** Jobs that came in each of the last minutes, the newest last, without those that were announced. */
  minutes: readonly number[]
  /** A minute, on average, in the same hour a day and a week ago, and in the hour after it; null where nothing is known. */
  sameHour: number | null
  nextHour: number | null
  /** Until the next full hour. */
  minutesLeft: number
}

const RECENT_MINUTES = 15
/** An hour ahead, the same time of other days is believed as much as the last minutes are. */
const MOST_SEASONAL = 0.5
const HORIZON_MINUTES = 60

/** What was lately goes on, and the further ahead the more it becomes what it was at that time of the day. */
export const expectArrivals = (history: ArrivalHistory, minutes: number): Arrivals => {
  const recent = mean(history.minutes.slice(-RECENT_MINUTES))
  const jobsPerMinute = Array.from({ length: minutes }, (_, n) => {
    const seasonal = n < history.minutesLeft ? history.sameHour : history.nextHour
    const weight = seasonal === null ? 0 : MOST_SEASONAL * Math.min(1, (n + 1) / HORIZON_MINUTES)
    return (1 - weight) * recent + weight * (seasonal ?? 0)
  })
  const middle = mean(history.minutes)
  const variance = mean(history.minutes.map((jobs) => (jobs - middle) ** 2))
  return { jobsPerMinute, dispersion: middle > 0 ? Math.max(1, variance / middle) : 1 }
}

const mean = (values: readonly number[]): number =>
  values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : 0
