import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as tf from '@tensorflow/tfjs-core'
import { failsWith } from '../../support/fails-with.ts'
import { inline, makeSeries, noisySeason, randomWalk, runMl } from '../../support/ml.ts'

const medians = ({ forecast }: { forecast: { p50: number }[] }) => forecast.map(({ p50 }) => p50)
const near = (actual: number[], expected: number[], tolerance: number) =>
  actual.forEach((value, n) => {
    const wanted = expected[n] as number
    assert.ok(Math.abs(value - wanted) <= tolerance, `step ${n + 1}: ${value} instead of ${wanted}`)
  })

describe('an ml job', () => {
  it('learns a noisy season far below the error of the naive forecast', async () => {
    const result = await runMl({ series: inline(noisySeason(360)), horizon: 6 })
    assert.deepEqual(
      [result.source, result.beats_naive, result.season, result.naive_kind, result.n],
      ['lstm', true, 12, 'seasonal', 360],
    )
    // Two noisy values are √2 times as far apart as one is from the truth: nobody can save more than 29 %.
    const { improvement, model, naive, holdout, origins } = result.error
    assert.ok(improvement !== null && improvement > 0.12 && improvement < 0.35, `${improvement}`)
    assert.ok(Math.abs(improvement - (1 - model.mae / naive.mae)) < 1e-6)
    assert.ok(model.rmse < naive.rmse && (model.mase ?? 0) < (naive.mase ?? 0))
    assert.ok(model.coverage > 0.6 && model.coverage < 0.95, `${model.coverage}`)
    assert.deepEqual([holdout, origins], [36, 31])
    const truth = Array.from({ length: 6 }, (_, n) => 100 + 20 * Math.sin((2 * Math.PI * (360 + n)) / 12))
    const off = medians(result).map((median, n) => Math.abs(median - (truth[n] as number)))
    assert.ok(off.reduce((sum, each) => sum + each, 0) / 6 < 4, `${off}`)
    for (const { p10, p50, p90 } of result.forecast) assert.ok(p10 <= p50 && p50 <= p90)
    assert.deepEqual(
      result.forecast.map(({ step }) => step),
      [1, 2, 3, 4, 5, 6],
    )
    assert.ok(result.stopped_early && result.epochs_run === result.best_epoch + 8)
    assert.equal(result.loss_curve.length, result.epochs_run + 1)
    assert.equal(result.told.notes.length >= result.epochs_run, true)
    assert.match(result.told.notes[0] as string, /^epoch 1 of 60, loss \d\.\d+ \(naive \d\.\d+\)$/)
    assert.deepEqual(
      result.told.fractions,
      result.told.fractions.toSorted((a, b) => a - b),
    )
  })

  it('claims nothing on a random walk: the forecast is the last value', async () => {
    const values = randomWalk(300, 2)
    const result = await runMl({ series: inline(values), horizon: 12, season: 1 })
    assert.deepEqual(
      [result.source, result.beats_naive, result.naive_kind, result.season],
      ['naive', false, 'last_value', null],
    )
    assert.ok((result.error.improvement ?? 1) < 0.05)
    assert.deepEqual(new Set(medians(result)), new Set([Number(values.at(-1)?.toPrecision(10))]))
    const widths = result.forecast.map(({ p10, p90 }) => p90 - p10)
    assert.ok((widths[11] as number) > 2 * (widths[0] as number), 'the further, the less certain')
  })

  it('remembers: the value of two steps before says more than any average', async () => {
    const values = makeSeries(300, (t, noise, before) =>
      t < 2 ? noise() : -0.9 * (before[t - 2] as number) + 0.3 * noise(),
    )
    const { source, error } = await runMl({ series: inline(values), horizon: 2, season: 1, epochs: 12 })
    assert.equal(source, 'lstm')
    assert.ok((error.improvement ?? 0) > 0.5, `${error.improvement}`)
  })

  it('gives the same forecast for the same seed, another for another', async () => {
    const payload = { series: inline(noisySeason(120)), horizon: 4, epochs: 2 }
    const { told: _told, duration_ms: _first, ...result } = await runMl(payload)
    const { told: _again, duration_ms: _second, ...same } = await runMl(payload)
    assert.deepEqual(same, result)
    assert.notDeepEqual((await runMl({ ...payload, seed: 2 })).loss_curve, result.loss_curve)
  })

  it('knows nothing of the held-out tail while it learns', async () => {
    const values = noisySeason(150)
    const payload = { horizon: 4, holdout: 20, epochs: 2 }
    const result = await runMl({ ...payload, series: inline(values) })
    const changed = values.map((value, n) => (n < 130 ? value : 3 * value + n))
    const other = await runMl({ ...payload, series: inline(changed) })
    assert.deepEqual(other.loss_curve, result.loss_curve)
    assert.deepEqual([other.season, other.naive_kind], [result.season, result.naive_kind])
    assert.notDeepEqual(other.error, result.error)
  })

  it('does not mind the scale: a million times the values, a million times the forecast', async () => {
    const values = noisySeason(150)
    const payload = { horizon: 4, epochs: 3 }
    const result = await runMl({ ...payload, series: inline(values) })
    const large = await runMl({ ...payload, series: inline(values.map((value) => 1e6 * value - 5e8)) })
    near(
      medians(large).map((value) => (value + 5e8) / 1e6),
      medians(result),
      0.01,
    )
    const huge = await runMl({ ...payload, series: inline(values.map((value) => -1e97 * value)) })
    near(
      medians(huge).map((value) => value / -1e97),
      medians(result),
      5,
    )
    assert.ok(Number.isFinite(huge.error.model.rmse))
  })

  it('bears outliers: all of the answer are numbers', async () => {
    const values = noisySeason(120).map((value, n) => (n % 50 === 7 ? -1e100 : value))
    const { told: _told, ...result } = await runMl({ series: inline(values), horizon: 4, epochs: 2 })
    assert.deepEqual(JSON.parse(JSON.stringify(result)), result)
    assert.ok(
      medians(result).every((median) => Math.abs(median - 100) < 60),
      `${medians(result)}`,
    )
  })

  it('reaches a horizon of more steps than one window has', async () => {
    const result = await runMl({ series: inline(noisySeason(240)), horizon: 60, season: 12, epochs: 4 })
    const steps = result.forecast.map(({ step }) => step)
    assert.deepEqual(
      steps,
      Array.from({ length: 60 }, (_, n) => n + 1),
    )
    const truth = steps.map((step) => 100 + 20 * Math.sin((2 * Math.PI * (239 + step)) / 12))
    near(medians(result), truth, 15)
  })

  it('leaves no tensor behind', async () => {
    const payload = { series: inline(noisySeason(120)), horizon: 4, epochs: 1 }
    await runMl(payload)
    const { numTensors, numDataBuffers } = tf.memory()
    await runMl(payload)
    assert.deepEqual([tf.memory().numTensors, tf.memory().numDataBuffers], [numTensors, numDataBuffers])
  })
})

describe('a series that needs no network', () => {
  it('is constant', async () => {
    const result = await runMl({ series: inline(Array(60).fill(-7.5)), horizon: 4 })
    assert.deepEqual(result.forecast[3], { step: 4, p10: -7.5, p50: -7.5, p90: -7.5 })
    assert.deepEqual([result.source, result.epochs_run, result.error.improvement], ['naive', 0, null])
    assert.deepEqual(result.error.model, { mae: 0, rmse: 0, mase: null, coverage: 1 })
  })

  it('repeats itself exactly', async () => {
    const week = [3, 1, 4, 1, 5, 9, 2]
    const result = await runMl({ series: inline(makeSeries(70, (t) => week[t % 7] as number)), horizon: 7 })
    assert.deepEqual(medians(result), week)
    assert.deepEqual([result.season, result.naive_kind, result.epochs_run], [7, 'seasonal', 0])
  })
})

describe('values that are missing', () => {
  const values = noisySeason(120)
  const gaps = values.map((value, n) => (n === 40 || n === 41 || n === 70 ? null : value))

  it('are refused with their place, for good', async () => {
    const attempt = runMl({ series: inline(gaps), horizon: 6 })
    await assert.rejects(attempt, failsWith('missing_values', true, /^Value 41 is missing, and 2 more are\./))
  })

  it('are put on the line between their neighbours, if asked for', async () => {
    const line = makeSeries(60, (t) => 2 * t)
    const holed = line.map((value, n) => (n % 10 === 5 || n % 10 === 6 ? null : value))
    const payload = { horizon: 3, epochs: 1 } as const
    const filled = await runMl({ ...payload, series: inline(holed), missing: 'interpolate' })
    const whole = await runMl({ ...payload, series: inline(line) })
    assert.equal(filled.interpolated, 12)
    assert.deepEqual([filled.forecast, filled.error], [whole.forecast, whole.error])
  })

  for (const [end, holed] of [
    ['first', [null, ...values]],
    ['last', [...values, null]],
  ] as const) {
    it(`cannot be guessed where the ${end} value should be`, async () => {
      const attempt = runMl({ series: inline(holed), horizon: 6, missing: 'interpolate' })
      await assert.rejects(
        attempt,
        failsWith('missing_values', true, new RegExp(`^The ${end} value is missing`)),
      )
    })
  }
})

describe('a series that is too short', () => {
  const refused = (length: number, payload: object, message: RegExp) =>
    assert.rejects(
      runMl({ series: inline(noisySeason(length)), horizon: 10, ...payload }),
      failsWith('series_too_short', true, message),
    )

  it('is refused with the length that is needed, and that length is enough', async () => {
    await refused(37, {}, /^The series has 37 values; 38 are needed: 10 held out, two horizons of 10/)
    const { n, forecast } = await runMl({ series: inline(noisySeason(38)), horizon: 10, epochs: 1 })
    assert.deepEqual([n, forecast.length], [38, 10])
  })

  it('may be so because of a season or a tail that was asked for', async () => {
    await refused(48, { season: 12 }, /49 are needed: 10 held out, two horizons of 10, a season of 12 /)
    const { season } = await runMl({ series: inline(noisySeason(49)), horizon: 10, season: 12, epochs: 1 })
    assert.equal(season, 12)
    await refused(100, { holdout: 90 }, /118 are needed: 90 held out/)
    await refused(0, {}, /has 0 values/)
  })
})
