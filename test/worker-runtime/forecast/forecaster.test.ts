import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { forecastLoad } from '../../../worker-runtime/forecast/forecast.ts'
import {
  begin,
  type Forecaster,
  type ForecastOptions,
  goOn,
} from '../../../worker-runtime/forecast/forecaster.ts'
import { horizonOf, spreadOverMinutes } from '../../../worker-runtime/forecast/horizon.ts'
import { toSeries, upTo } from '../../../worker-runtime/forecast/load-series.ts'
import { packForecaster, unpackForecaster } from '../../../worker-runtime/forecast/stored-forecaster.ts'
import { evaluate, whyUnusable } from '../../../worker-runtime/forecast/verdict.ts'
import { useWasmBackend } from '../../../worker-runtime/learning/wasm-backend.ts'
import { comeAt, type LoadPattern } from '../../support/load-patterns.ts'

/** A day of four hours of 24 minutes each, so that a week is soon over. */
const OPTIONS: ForecastOptions = {
  horizon: horizonOf(75),
  calendar: { hour: 24, day: 96, week: 672 },
  pause: async () => {},
  steps: { first: 60, round: 3 },
}
/** Where it does not matter what is learned. */
const BRIEF: ForecastOptions = { ...OPTIONS, steps: { first: 4, round: 2 } }
const { horizon } = OPTIONS
const FIRST_MINUTE = 672_000

/** Twice a day, at the same times, much more comes than else. */
const bursts = comeAt((minute) => ([20, 21, 22, 70, 71, 72].includes(minute % 96) ? 60 : 4))
const noise = comeAt(() => 5)

const seriesOf = (pattern: LoadPattern, minutes: number) => ({
  firstMinute: FIRST_MINUTE,
  values: pattern(minutes, 7),
})
const beginWith = async (
  series: { firstMinute: number; values: Float64Array },
  options = OPTIONS,
): Promise<Forecaster> => {
  const begun = await begin(series, options)
  assert.ok('forecaster' in begun, JSON.stringify(begun))
  return begun.forecaster
}

before(useWasmBackend)

test('a daily pattern is learned: it beats the last hour, the day before and the recent level, and sees a burst come', async () => {
  const series = seriesOf(bursts, 14 * 96)
  const forecaster = await beginWith(series)
  const { errors, coverage, minutes } = evaluate(forecaster.record)
  assert.equal(whyUnusable(forecaster.record), null)
  for (const rival of ['last_hour', 'seasonal', 'steady'] as const)
    assert.ok(errors.lstm < 0.95 * errors[rival], `${errors.lstm} against ${rival}'s ${errors[rival]}`)
  assert.ok(coverage > 0.84 && coverage < 0.96, `coverage ${coverage}`)
  assert.ok(minutes > 250, `${minutes} windows were judged`)
  const sumAt = (minute: number): number => {
    const known = upTo(series, 13 * 96 + minute)
    return forecastLoad(forecaster, known, OPTIONS)
      .p50Ms.slice(0, horizon.window)
      .reduce((a, b) => a + b)
  }
  assert.ok(sumAt(20) > 4 * sumAt(40), `before a burst ${sumAt(20)}, else ${sumAt(40)}`)
})

test('where nothing can be learned the forecast is no worse than the level, and gives way to it', async () => {
  const { record } = await beginWith(seriesOf(noise, 14 * 96))
  const { errors } = evaluate(record)
  assert.ok(errors.lstm < 1.02 * errors.steady, JSON.stringify(errors))
  assert.match(whyUnusable(record) ?? '', /^The level of the last minutes says as much: its error is \d+ %/)
})

test('another one goes on from what was stored with the same numbers, and what it does not understand is left alone', async () => {
  const series = seriesOf(bursts, 3 * 96)
  const forecaster = await beginWith(upTo(series, 250), BRIEF)
  const bytes = packForecaster(forecaster, horizon)
  const resumed = unpackForecaster(bytes, horizon)
  assert.deepEqual(resumed, forecaster)
  assert.deepEqual(await goOn(resumed as Forecaster, series, BRIEF), await goOn(forecaster, series, BRIEF))
  assert.deepEqual(
    forecastLoad(resumed as Forecaster, series, BRIEF),
    forecastLoad(forecaster, series, BRIEF),
  )
  const { record } = await goOn(forecaster, upTo(series, 250), BRIEF)
  assert.deepEqual(record, forecaster.record, 'nothing has come that it could be judged by')
  assert.equal(unpackForecaster(bytes, horizonOf(600)), undefined, 'of another lead time')
  for (const damaged of [
    bytes.subarray(0, 3),
    bytes.subarray(0, 40),
    bytes.subarray(0, -1),
    new Uint8Array(200),
  ])
    assert.equal(unpackForecaster(damaged, horizon), undefined)
})

test('no series is too odd: short ones and empty ones say why, others are forecast in numbers', async () => {
  const of = (values: number[] | Float64Array) => ({
    firstMinute: FIRST_MINUTE,
    values: Float64Array.from(values),
  })
  const reasonOf = async (values: number[] | Float64Array) => {
    const begun = await begin(of(values), BRIEF)
    return 'forecaster' in begun ? undefined : begun.unusableBecause
  }
  assert.match((await reasonOf([])) ?? '', /^There are 0 hours of history, and it takes 8/)
  assert.match((await reasonOf(noise(100, 1))) ?? '', /^There are 4 hours/)
  assert.match((await reasonOf(Array(300).fill(0))) ?? '', /^Too little work/)
  const lateOnly = Array(300).fill(0).fill(1e5, 290)
  assert.match((await reasonOf(lateOnly)) ?? '', /^Too little work/)
  const odd = {
    constant: Array(300).fill(60_000),
    spiky: Array.from({ length: 300 }, (_, n) => (n % 97 === 5 ? 1e12 : 0)),
    'one spike': Array(300).fill(0).fill(1e15, 30, 31),
    'silent since': Array(300).fill(0).fill(5e4, 0, 150),
    tiny: Array.from({ length: 300 }, (_, n) => (n % 3) * 1e-6),
  }
  for (const [name, values] of Object.entries(odd)) {
    const forecaster = await beginWith(of(values), BRIEF)
    assert.ok(whyUnusable(forecaster.record), name)
    const { p50Ms, p90Ms } = forecastLoad(forecaster, of(values), BRIEF)
    assert.deepEqual([p50Ms.length, p90Ms.length], [5, 5], name)
    assert.ok(
      [...p50Ms, ...p90Ms].every((ms) => Number.isFinite(ms) && ms >= 0),
      `${name}: ${p50Ms} ${p90Ms}`,
    )
  }
})

test('what is told of minutes adds up to what is forecast of windows, and never goes back', () => {
  assert.deepEqual(horizonOf(75), { window: 2, spans: [1, 2, 3, 4, 5], minutes: 5 })
  assert.deepEqual(horizonOf(1).window, 1)
  const hour = horizonOf(3600)
  assert.deepEqual(hour, { window: 60, spans: [1, 30, 60, 63], minutes: 63 })
  const minutes = spreadOverMinutes(hour, [10, 300, 290, 350])
  assert.equal(minutes.length, 63)
  assert.deepEqual([minutes[0], minutes[1], minutes[40], minutes[62]], [10, 10, 0, 50 / 3])
})

test('minutes without a row are zeros, and the one that is not over is not known', () => {
  const rows = [
    { minute: 10, workMs: 5 },
    { minute: 13, workMs: 7 },
    { minute: 15, workMs: 1 },
  ]
  const { firstMinute, values } = toSeries(rows, 15)
  assert.deepEqual([firstMinute, ...values], [10, 5, 0, 0, 7, 0])
  assert.deepEqual(toSeries([], 15).values.length, 0)
})
