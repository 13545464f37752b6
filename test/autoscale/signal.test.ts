import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ExpectedLoad, type ScalingSettings, scalingSignal } from '../../db/rules/autoscale.ts'

const SETTINGS = {
  slots_per_worker: 10,
  drain_goal_seconds: 60,
  lead_seconds: 75,
  min_workers: 1,
  max_workers: 5,
}
const NOTHING = {
  queued_seconds: 0,
  running_seconds: 0,
  arriving_per_second: 0,
  scheduled_seconds: 0,
  forecast_p50_seconds: null,
}
const signal = (load: Partial<ExpectedLoad>, settings: Partial<ScalingSettings> = {}) =>
  scalingSignal({ ...NOTHING, ...load, ...SETTINGS, ...settings })

test('one worker gets done what its slots do within the drain goal, at a load of 0.8', () => {
  assert.equal(signal({}).T, 480)
  assert.equal(signal({}, { slots_per_worker: 4, drain_goal_seconds: 30 }).T, 96)
})

test('the greatest of what is there, what keeps coming and what is expected decides', () => {
  assert.deepEqual(
    [
      signal({ queued_seconds: 400, running_seconds: 200 }).B,
      signal({ queued_seconds: 400, running_seconds: 200 }).desired,
    ],
    [600, 2],
  )
  assert.deepEqual(
    [signal({ queued_seconds: 480, arriving_per_second: 10 }).R, signal({ arriving_per_second: 17 }).desired],
    [1080, 3],
  )
  assert.deepEqual(
    [
      signal({ forecast_p50_seconds: 900, scheduled_seconds: 700 }).F,
      signal({ forecast_p50_seconds: 900, scheduled_seconds: 700 }).desired,
    ],
    [1600, 4],
  )
  const all = signal({
    queued_seconds: 96,
    running_seconds: 48,
    arriving_per_second: 0.8,
    scheduled_seconds: 240,
    forecast_p50_seconds: 0,
  })
  assert.deepEqual(all.needed, { B: 0.3, R: 0.3, F: 0.5 })
})

test('it stays within the range, and a forecast asks for no more than there may be', () => {
  assert.equal(signal({}).desired, 1)
  assert.equal(signal({}, { min_workers: 3 }).desired, 3)
  assert.deepEqual(
    [signal({ queued_seconds: 1e9 }).desired, signal({ queued_seconds: 1e9 }).needed.B > 1e6],
    [5, true],
  )
  const wild = signal({ forecast_p50_seconds: 1e12 })
  assert.deepEqual([wild.F, wild.needed.F, wild.desired], [2400, 5, 5])
})

test('without a forecast only what was announced is expected', () => {
  assert.equal(signal({ forecast_p50_seconds: null }).F, 0)
  assert.equal(signal({ forecast_p50_seconds: null, scheduled_seconds: 48 }).needed.F, 0.1)
})
