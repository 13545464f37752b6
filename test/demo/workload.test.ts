import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { makeRequest } from '../../worker-runtime/demo/job-requests.ts'
import { KINDS, type Kind, TENANTS } from '../../worker-runtime/demo/kinds.ts'
import { PIPELINES } from '../../worker-runtime/demo/pipelines.ts'
import { planDemo } from '../../worker-runtime/demo/plan.ts'
import { drawRuntimeMs, type Runtime } from '../../worker-runtime/demo/runtimes.ts'

const draw = (runtime: Runtime, circumstances: { kb?: number; atMs?: number } = {}, seed = 1): number[] => {
  const random = createRandom(seed)
  return Array.from({ length: 1_000 }, () =>
    drawRuntimeMs(runtime, { kb: 0, atMs: 0, ...circumstances, random }),
  )
}
const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
const ofShape = (shape: Runtime['shape']): Kind[] => KINDS.filter(({ runtime }) => runtime.shape === shape)

const making = () => ({ targetUrl: 'http://127.0.0.1:1', random: createRandom(1), now: () => 0 })

test('size-dependent runtimes grow with what is sent', () => {
  for (const { runtime, size = [1, 1] } of ofShape('size-dependent')) {
    const [small, large] = size.map((kb) => mean(draw(runtime, { kb })))
    assert.ok(Number(large) > 4 * Number(small), `${small} to ${large} ms`)
  }
})

test('periodic runtimes follow the clock', () => {
  for (const { runtime } of ofShape('periodic')) {
    if (runtime.shape !== 'periodic') continue
    const periodMs = runtime.periodSeconds * 1000
    const idle = mean(draw(runtime, { atMs: 7 * periodMs }))
    const busy = mean(draw(runtime, { atMs: 7.5 * periodMs }))
    assert.ok(Math.abs(idle / runtime.idleMs - 1) < 0.02 && Math.abs(busy / runtime.busyMs - 1) < 0.02)
  }
})

test('bimodal runtimes are one of two, and nothing between', () => {
  for (const { runtime } of ofShape('bimodal')) {
    if (runtime.shape !== 'bimodal') continue
    const runtimes = draw(runtime)
    const misses = runtimes.filter((ms) => ms > 0.9 * runtime.missMs).length
    assert.equal(misses + runtimes.filter((ms) => ms < 1.1 * runtime.hitMs).length, runtimes.length)
    assert.ok(Math.abs(misses / runtimes.length - runtime.missShare) < 0.05)
  }
})

test('there are kinds of every sort: runtimes, types, priorities, failures, deadlines', () => {
  const shapes = new Set(KINDS.map(({ runtime }) => runtime.shape))
  assert.deepEqual([...shapes].sort(), ['bimodal', 'computed', 'periodic', 'size-dependent', 'steady'])
  assert.deepEqual(new Set(KINDS.map(({ tenant }) => tenant)), new Set(TENANTS))
  assert.deepEqual(new Set(KINDS.map(({ type }) => type)), new Set(['http', 'etl', 'ml']))
  const priorities = new Set(KINDS.map(({ priority = 'normal' }) => priority))
  assert.deepEqual([...priorities].sort(), ['critical', 'high', 'low', 'normal'])
  assert.deepEqual(KINDS.flatMap(({ fails }) => fails?.status ?? []).sort(), [404, 500, 503])
  assert.ok(KINDS.some(({ timeoutSeconds, runtime }) => timeoutSeconds && runtime.shape === 'steady'))
  assert.ok(KINDS.some(({ deadlineSeconds }) => deadlineSeconds))
})

test('the work of a run fits the ten slots of one worker, and comes in waves', () => {
  const plan = planDemo({ durationMs: 100_000, rate: 36, seed: 1 })
  assert.ok(plan.length > 2_000, `${plan.length} jobs`)
  const inSpan = (fromS: number, toS: number): number =>
    plan.filter(({ atMs }) => atMs >= fromS * 1000 && atMs < toS * 1000).length
  assert.ok(inSpan(10, 20) > 2 * inSpan(0, 10), 'a wave rises')
  assert.ok(inSpan(10, 20) > 2 * inSpan(20, 30), 'and falls')
  const random = createRandom(2)
  const workMs = KINDS.reduce((sum, { weight, runtime, size = [0, 0], timeoutSeconds = 99 }) => {
    const kb = size[0] === 0 ? 0 : (size[1] - size[0]) / Math.log(size[1] / size[0])
    const runtimes = Array.from({ length: 500 }, (_, n) =>
      drawRuntimeMs(runtime, { kb, atMs: n * 777, random }),
    )
    return sum + weight * Math.min(mean(runtimes), timeoutSeconds * 1000)
  }, 0)
  const meanMs = workMs / KINDS.reduce((sum, { weight }) => sum + weight, 0)
  const busySlots = (36 * meanMs) / 1000
  assert.ok(busySlots > 5 && busySlots < 7, `${busySlots} slots are busy`)
})

test('the same seed plans the same', () => {
  const plan = (seed: number) => JSON.stringify(planDemo({ durationMs: 10_000, rate: 20, seed }))
  assert.equal(plan(7), plan(7))
  assert.notEqual(plan(7), plan(8))
})

test('every payload fits into a request', () => {
  for (const kind of KINDS) {
    const request = makeRequest(kind, { ...making(), random: () => 0.999 })
    assert.ok(JSON.stringify(request).length < 256 * 1024, kind.name)
  }
})

test('a pipeline fans out and in again', () => {
  for (const { make } of PIPELINES) {
    const jobs = make(making())
    const parents = jobs.map(({ depends_on = [] }) => depends_on.length)
    assert.deepEqual(parents, [0, 0, 0, 3, 1])
  }
})
