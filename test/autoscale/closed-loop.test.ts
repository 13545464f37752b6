import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COUNT } from '../bench/autoscale/bench.ts'
import {
  type Outcome,
  POD_START_SECONDS,
  type Policy,
  PREDICTED_WORK,
  REACTIVE,
  STATIC,
  simulate,
  WITHOUT_FORECAST,
} from '../bench/autoscale/simulation.ts'
import { createWorkloads } from '../bench/autoscale/workloads.ts'

const workloads = new Map(createWorkloads(7).map((workload) => [workload.name, workload]))

/** The closed loop with pods that start in 45 s: the same jobs, scaled by each of these. */
const over = (name: string, ...policies: Policy[]): Outcome[] => {
  const workload = workloads.get(name)
  assert.ok(workload, name)
  return policies.map((policy) => simulate(workload, policy))
}
const compare = (name: string) => {
  const [work, count] = over(name, PREDICTED_WORK, BY_COUNT)
  assert.ok(work && count)
  return { work, count, cost: work.pod_hours / count.pod_hours }
}

test('before a burst that comes every hour, pods are there: by count its jobs wait, at the same price', () => {
  const { work, count, cost } = compare('hourly burst')
  assert.ok(work.wait_p95_s < 1 && count.wait_p95_s > 10, `${work.wait_p95_s} s, ${count.wait_p95_s} s`)
  assert.ok(cost < 1.02, `${cost}`)
})

test('a burst that was announced waits a third as long as by count, at the same price', () => {
  const { work, count, cost } = compare('scheduled burst')
  assert.ok(work.wait_p95_s < count.wait_p95_s / 3, `${work.wait_p95_s} s, ${count.wait_p95_s} s`)
  assert.ok(cost < 1.02, `${cost}`)
})

test('along a ramp jobs wait no longer than by count, for fewer pod-hours', () => {
  const { work, count, cost } = compare('ramp')
  assert.ok(work.wait_p95_s <= count.wait_p95_s && cost < 0.95, `${work.wait_p95_s} s, ${cost}`)
})

test('a steady load is not paid for twice', () => {
  const { work, count, cost } = compare('steady')
  assert.ok(work.wait_p95_s <= count.wait_p95_s && cost < 1, `${work.wait_p95_s} s, ${cost}`)
})

test('a thousand tiny jobs start no pods that would come too late', () => {
  const { work, count, cost } = compare('many tiny jobs')
  assert.equal(work.wait_p95_s, count.wait_p95_s)
  assert.ok(cost < 0.9, `${cost}`)
})

test('what nobody could know of waits longer than by count, but no longer than a pod takes to start', () => {
  const { work, count } = compare('flash crowd')
  assert.ok(work.wait_p95_s > count.wait_p95_s, 'docs/scaling.md says that it does')
  assert.ok(work.wait_max_s < POD_START_SECONDS, `${work.wait_max_s} s`)
})

test('the forecast is worth what it is there for, and so are the known times', () => {
  const [full, unforeseen] = over('hourly burst', PREDICTED_WORK, WITHOUT_FORECAST)
  assert.ok(full && unforeseen && full.wait_p95_s < unforeseen.wait_p95_s / 5)
  const [announced, reactive] = over('scheduled burst', WITHOUT_FORECAST, REACTIVE)
  assert.ok(announced && reactive && announced.wait_p95_s < reactive.wait_p95_s / 3)
})

test('as many pods as ever possible cost three times as much', () => {
  const [work, always] = over('hourly burst', PREDICTED_WORK, STATIC)
  assert.ok(work && always && always.wait_max_s < 1)
  assert.ok(always.pod_hours / work.pod_hours > 3)
})

test('the simulation answers the same each time', () => {
  const [first, second] = over('few long jobs', PREDICTED_WORK, PREDICTED_WORK)
  assert.deepEqual(first, second)
  assert.ok((first?.jobs ?? 0) > 1_000)
})
