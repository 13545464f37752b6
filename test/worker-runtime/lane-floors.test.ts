import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LaneFloor } from '../../db/queue/exchange.ts'
import { createLaneFloors } from '../../worker-runtime/lane-floors.ts'

const setUp = () => {
  const clock = { ms: 0 }
  return { clock, floors: createLaneFloors(() => clock.ms) }
}
/** A claim as the database sums it up: the smallest key of each lane. */
const claimOf = (floors: Record<number, number>, order: 'rank' | 'age' = 'rank') => ({ floors, order })

/** Whether a claim that reads from these floors sees the job. */
const sees = (floors: readonly LaneFloor[], lane: number, key: number): boolean => {
  const floor = floors.findLast((candidate) => candidate.lane <= lane)
  return lane < 5_000 && floor !== undefined && (floor.lane < lane || key >= floor.key)
}

test('at first the whole order is looked through, parked lanes aside', () => {
  assert.deepEqual(setUp().floors.floors(), [{ lane: -5_000, key: 0 }])
})

test('after full claims only what lies below the floors is left out', () => {
  const { floors } = setUp()
  floors.observe(claimOf({ 10: 100, '-3': 40, 11: 7 }), false)
  const known = floors.floors()
  for (const [lane, floor] of [
    [-3, 40],
    [10, 100],
    [11, 7],
  ] as const) {
    assert.equal(sees(known, lane, floor), true)
    assert.equal(sees(known, lane, floor - 1), false, `below the floor of lane ${lane}`)
    assert.equal(sees(known, lane, 1e12), true)
  }
  for (const lane of [-5_000, -4, -2, 0, 9, 12, 4_999]) {
    assert.equal(sees(known, lane, 1), true, `all of lane ${lane}, which nobody has claimed from`)
  }
  assert.equal(sees(known, 5_000, 1), false)
})

test('a claim that ran dry, or passed over jobs, drops all floors', () => {
  const { floors } = setUp()
  floors.observe(claimOf({ 10: 100 }, 'age'), false)
  floors.observe(claimOf({ 10: 200 }, 'age'), true)
  assert.equal(sees(floors.floors(), 10, 1), true)
  assert.equal(floors.ageFrom(), 0)
})

test('a job whose submission commits late is found within about two seconds', () => {
  const { clock, floors } = setUp()
  let foundAtMs: number | undefined
  // Keys are given out at ten a millisecond. The late job got its key at 5,000 ms and appears then, 500 keys behind.
  for (; clock.ms < 20_000 && foundAtMs === undefined; clock.ms += 10) {
    const known = floors.floors()
    const lateKey = 50_000 - 500
    if (clock.ms >= 5_000 && sees(known, 10, lateKey)) foundAtMs = clock.ms
    floors.observe(claimOf({ 10: clock.ms * 10 }), false)
  }
  assert.ok(foundAtMs !== undefined && foundAtMs <= 7_000, `found at ${foundAtMs} ms`)
})

test('everything is looked through every thirty seconds, and hardly more often', () => {
  const { clock, floors } = setUp()
  const looks: number[] = []
  for (; clock.ms <= 100_000; clock.ms += 50) {
    if (sees(floors.floors(), 10, 1)) looks.push(clock.ms)
    floors.observe(claimOf({ 10: 1_000 + clock.ms }), false)
  }
  const periods = new Set(looks.map((ms) => Math.floor(ms / 30_000)))
  assert.deepEqual([...periods], [0, 1, 2, 3])
  assert.ok(looks.length <= 8, `two each: at once, and with the floors of a second before: ${looks}`)
})

test('the order of age has a floor of its own, set by claims in that order', () => {
  const { floors } = setUp()
  floors.observe(claimOf({ 3: 5 }), false)
  assert.equal(floors.ageFrom(), 0)
  floors.observe(claimOf({ 10: 100, 11: 90 }, 'age'), false)
  assert.equal(floors.ageFrom(), 90)
  floors.observe(claimOf({}, 'age'), false)
  assert.equal(floors.ageFrom(), 90, 'a claim of urgent jobs only says nothing')
})

test('a claim by rank that saw the oldest job that is left raises the floor of age', () => {
  const { floors } = setUp()
  floors.observe({ ...claimOf({ 3: 5 }), oldestLeft: 40 }, false)
  assert.equal(floors.ageFrom(), 40)
  floors.observe({ ...claimOf({ 3: 5 }), oldestLeft: null }, false)
  assert.equal(floors.ageFrom(), 40, 'there was none')
  floors.observe({ ...claimOf({ 3: 5 }), oldestLeft: 90 }, true)
  assert.equal(floors.ageFrom(), 0, 'it may have passed over some')
})

test('the floor of age steps back, too, if nobody ever looks by rank', () => {
  const { clock, floors } = setUp()
  let seen = 0
  for (let key = 100; clock.ms < 60_000; clock.ms += 100, key += 10) {
    if (floors.ageFrom() <= 50) seen++
    floors.observe(claimOf({ 10: key }, 'age'), false)
  }
  assert.ok(seen >= 2, 'a job that came late behind its floor is found')
})
