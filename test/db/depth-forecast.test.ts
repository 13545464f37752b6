import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DepthNow, expectArrivals, forecastDepth } from '../../functions/analytics/depth-forecast.ts'
import { quantileOf } from '../../functions/analytics/log-histogram.ts'

const NOTHING_COMES = { jobsPerMinute: [], dispersion: 1 }

const queue = (overrides: Partial<DepthNow> = {}): DepthNow => ({
  jobs: 0,
  workMs: 0,
  slots: 10,
  stretch: 1,
  meanMs: 1_000,
  others: { workMs: 0, load: 0 },
  arrivals: NOTHING_COMES,
  announced: [],
  ...overrides,
})

const each = (jobs: number, minutes = 60) => ({
  jobsPerMinute: Array.from({ length: minutes }, () => jobs),
  dispersion: 1,
})

const after = (now: DepthNow, minutes: number) => {
  const last = forecastDepth(now, minutes).at(-1)
  assert.ok(last)
  return last
}

test('an empty queue stays empty', () => {
  assert.deepEqual(
    forecastDepth(queue(), 3).map(({ inMs, jobs, jobsP90, workMs }) => [inMs, jobs, jobsP90, workMs]),
    [60_000, 120_000, 180_000].map((inMs) => [inMs, 0, 0, 0]),
  )
})

test('a backlog is worked off as fast as the slots are', () => {
  // An hour of work on ten slots is six minutes.
  const now = queue({ jobs: 3_600, workMs: 3_600_000 })
  assert.ok(Math.abs(after(now, 3).jobs - 1_800) < 1)
  assert.equal(Math.round(after(now, 3).workMs), 1_800_000)
  assert.equal(after(now, 7).jobs, 0)
  assert.ok(after({ ...now, stretch: 2 }, 7).jobs > 1_000, 'and slower if work takes longer than predicted')
  assert.equal(after({ ...now, slots: 0 }, 7).jobs, 3_600, 'not at all without any')
})

test('a job takes one slot at most, however many are free', () => {
  const { workMs } = after(queue({ jobs: 1, workMs: 600_000 }), 5)
  assert.ok(workMs >= 300_000 && workMs < 400_000, `${workMs}`)
})

test('what comes faster than it is served piles up', () => {
  // 1,200 jobs a minute are twenty slots' worth.
  const { jobs } = after(queue({ arrivals: each(1_200) }), 10)
  assert.ok(Math.abs(jobs - 6_000) < 100, `${jobs}`)
})

test('a queue that keeps up settles at rate times runtime', () => {
  // One a minute for five minutes each, by five of the ten slots.
  const { jobs } = after(queue({ meanMs: 300_000, arrivals: each(1) }), 60)
  assert.ok(Math.abs(jobs - 5) < 0.5, `${jobs}`)
})

test('others that have queued as much take half of the slots', () => {
  const now = queue({ jobs: 3_600, workMs: 3_600_000 })
  const shared = after({ ...now, others: { workMs: 3_600_000, load: 0 } }, 6)
  assert.ok(Math.abs(shared.jobs - 1_800) < 50, `${shared.jobs}`)
})

test('what keeps coming from others takes its share of the slots', () => {
  const now = queue({ jobs: 600, workMs: 600_000 })
  const shared = after({ ...now, others: { workMs: 0, load: 9 } }, 1).jobs
  assert.equal(after(now, 1).jobs, 0)
  assert.ok(shared > 100 && shared < 400, `${shared}`)
})

test('jobs whose time is known come at that time', () => {
  const announced = [
    { inMs: 150_000, workMs: 6_000_000 },
    { inMs: 150_000, workMs: 6_000_000 },
  ]
  const jobs = forecastDepth(queue({ announced }), 4).map((one) => Math.round(one.jobs))
  assert.deepEqual(jobs, [0, 0, 2, 2])
})

test('the ninetieth percentile widens with time and with bursts', () => {
  const busy = queue({ slots: 1, arrivals: each(60) })
  const calm = forecastDepth(busy, 30)
  assert.ok(calm.every(({ jobs, jobsP90 }) => jobsP90 > jobs))
  const [early, late] = [calm[4], calm[29]]
  assert.ok(early && late && late.jobsP90 - late.jobs > early.jobsP90 - early.jobs)
  const bursts = after({ ...busy, arrivals: { ...each(60), dispersion: 100 } }, 30)
  assert.ok(bursts.jobsP90 > 5 * (late?.jobsP90 ?? 0), `${bursts.jobsP90}`)
})

const HOUR = Array.from({ length: 60 }, () => 10)

test('without a history of days the last minutes go on', () => {
  const { jobsPerMinute, dispersion } = expectArrivals(
    { minutes: HOUR, sameHour: null, nextHour: null, minutesLeft: 30 },
    60,
  )
  assert.deepEqual(jobsPerMinute, HOUR)
  assert.equal(dispersion, 1)
})

test('further ahead the same time of other days counts, up to half', () => {
  const history = { minutes: HOUR, sameHour: 10, nextHour: 110, minutesLeft: 30 }
  const { jobsPerMinute } = expectArrivals(history, 60)
  assert.equal(jobsPerMinute[29], 10)
  assert.equal(jobsPerMinute[59], 60)
})

test('bursts are told by their spread, and silence by none', () => {
  const bursts = Array.from({ length: 60 }, (_, n) => (n % 10 === 0 ? 100 : 0))
  const history = { sameHour: null, nextHour: null, minutesLeft: 30 }
  assert.equal(Math.round(expectArrivals({ ...history, minutes: bursts }, 1).dispersion), 90)
  assert.deepEqual(expectArrivals({ ...history, minutes: [] }, 1), { jobsPerMinute: [0], dispersion: 1 })
})

test('quantiles lie where the counts do', () => {
  assert.equal(quantileOf([], 0.5), null)
  assert.equal(quantileOf([0, 0], 0.5), null)
  assert.equal(quantileOf([10], 0.5), 0.5, 'below one, in equal parts')
  // 2^((42 − 2) / 4) is 1024.
  const counts = Array.from({ length: 50 }, (_, n) => (n === 41 ? 8 : 0))
  assert.equal(quantileOf(counts, 0), 1_024)
  const median = quantileOf(counts, 0.5) ?? 0
  assert.ok(median > 1_024 && median < 1_218, `${median}`)
})
