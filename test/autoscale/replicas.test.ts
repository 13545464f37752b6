import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReplicaScaler, SCALING_BEHAVIOUR } from '../../worker-runtime/autoscale/replicas.ts'

const RANGE = { min: 1, max: 20 }

/** A pool that does as it is told, looked at every 15 seconds: what it has after each look. */
const follow = (needed: readonly (number | number[] | undefined)[], from = 1, range = RANGE): number[] => {
  const scaler = createReplicaScaler(range)
  let current = from
  return needed.map((one, n) => {
    const nowSeconds = 1_000 + n * SCALING_BEHAVIOUR.syncSeconds
    const asked = one === undefined ? undefined : [one].flat()
    current = scaler.next({ nowSeconds, current, needed: asked })
    return current
  })
}
const times = (count: number, value: number): number[] => Array.from({ length: count }, () => value)

test('it goes up at once, by four in fifteen seconds', () => {
  assert.deepEqual(follow([2.1]), [3])
  assert.deepEqual(follow([12, 12, 12]), [5, 9, 12])
})

test('four in fifteen seconds are four also for one who looks every two', () => {
  const scaler = createReplicaScaler(RANGE)
  let current = 1
  const seen = [0, 2, 4, 14, 15, 16].map((nowSeconds) => {
    current = scaler.next({ nowSeconds, current, needed: [12] })
    return current
  })
  assert.deepEqual(seen, [5, 5, 5, 5, 9, 9])
})

test('within a tenth of what is there nothing is done, by each metric for itself', () => {
  assert.deepEqual(follow([10.9], 10), [10])
  assert.deepEqual(follow([11.1], 10), [12])
  assert.deepEqual(follow([[10.9, 3, 0.5]], 10), [10], 'one that is content holds the others back')
  assert.deepEqual(follow([[1.2, 1.05, 0]], 1), [2])
})

test('it goes down by one a minute, once nothing has asked for more for two', () => {
  // The first look counts what is there as asked for.
  assert.deepEqual(follow(times(17, 0.5), 4), [4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1])
})

test('a moment of need keeps all that there is for two minutes more', () => {
  const looks = [...times(7, 0.5), 3.5, ...times(9, 0.5)]
  assert.deepEqual(follow(looks, 4), [...times(15, 4), 3, 3])
})

test('what was added within the minute may go again, and what went makes room to come back', () => {
  const behaviour = {
    ...SCALING_BEHAVIOUR,
    down: { ...SCALING_BEHAVIOUR.down, stabilizationWindowSeconds: 0 },
  } as unknown as typeof SCALING_BEHAVIOUR
  const scaler = createReplicaScaler(RANGE, behaviour)
  assert.equal(scaler.next({ nowSeconds: 0, current: 2, needed: [6] }), 6)
  assert.equal(scaler.next({ nowSeconds: 15, current: 6, needed: [0.5] }), 1, 'one less than a minute ago')
  assert.equal(scaler.next({ nowSeconds: 20, current: 1, needed: [20] }), 10, 'four more than 15 s ago')
})

test('it stays within the range, and what lies outside is brought back at once', () => {
  assert.deepEqual(follow([100, 100], 1, { min: 1, max: 5 }), [5, 5])
  assert.deepEqual(follow([0], 2, { min: 3, max: 5 }), [3])
  assert.deepEqual(follow([9], 9, { min: 1, max: 5 }), [5])
})

test('while nothing is known all stays as it is', () => {
  assert.deepEqual(follow([undefined, 3, undefined, ...times(12, 0.5)], 1).slice(0, 3), [1, 3, 3])
  assert.deepEqual(follow([undefined, undefined], 4), [4, 4])
  assert.deepEqual(follow([undefined], 9, { min: 1, max: 5 }), [5])
})
