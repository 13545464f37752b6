import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ExpectedLoad, type ScalingSettings, scalingSignal } from '../../db/rules/autoscale.ts'

const SETTINGS = { slotsPerWorker: 10, drainGoalSeconds: 60, leadSeconds: 75, minWorkers: 1, maxWorkers: 5 }
const NOTHING = { queued: 0, running: 0, arrivingPerSecond: 0, scheduled: 0, forecast: null }
const signal = (load: Partial<ExpectedLoad>, settings: Partial<ScalingSettings> = {}) =>
  scalingSignal({ ...NOTHING, ...load }, { ...SETTINGS, ...settings })

test('one worker gets done what its slots do within the drain goal, at a load of 0.8', () => {
  assert.equal(signal({}).T, 480)
  assert.equal(signal({}, { slotsPerWorker: 4, drainGoalSeconds: 30 }).T, 96)
})

test('the greatest of what is there, what keeps coming and what is expected decides', () => {
  assert.deepEqual(
    [signal({ queued: 400, running: 200 }).B, signal({ queued: 400, running: 200 }).desired],
    [600, 2],
  )
  assert.deepEqual(
    [signal({ queued: 480, arrivingPerSecond: 10 }).R, signal({ arrivingPerSecond: 17 }).desired],
    [1080, 3],
  )
  assert.deepEqual(
    [signal({ forecast: 900, scheduled: 700 }).F, signal({ forecast: 900, scheduled: 700 }).desired],
    [1600, 4],
  )
  const all = signal({ queued: 96, running: 48, arrivingPerSecond: 0.8, scheduled: 240, forecast: 0 })
  assert.deepEqual(all.needed, { B: 0.3, R: 0.3, F: 0.5 })
})

test('it stays within the range, and a forecast asks for no more than there may be', () => {
  assert.equal(signal({}).desired, 1)
  assert.equal(signal({}, { minWorkers: 3 }).desired, 3)
  assert.deepEqual([signal({ queued: 1e9 }).desired, signal({ queued: 1e9 }).needed.B > 1e6], [5, true])
  const wild = signal({ forecast: 1e12 })
  assert.deepEqual([wild.F, wild.needed.F, wild.desired], [2400, 5, 5])
})

test('without a forecast only what was announced is expected', () => {
  assert.equal(signal({ forecast: null }).F, 0)
  assert.equal(signal({ forecast: null, scheduled: 48 }).needed.F, 0.1)
})
