import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import { createEncoder } from './encoder.ts'
import type { Forecaster, ForecastOptions } from './forecaster.ts'
import { spreadOverMinutes } from './horizon.ts'
import type { LoadSeries } from './load-series.ts'
import { listen } from './mixture.ts'
import { answerAll, QUANTILES } from './windows.ts'

/** The work of each of the next minutes; the sum over the first of them is the quantile of the work within them. */
export type LoadForecast = { p50Ms: number[]; p90Ms: number[] }

/** From the last minute of the series on. */
export const forecastLoad = (
  { weights, fit, mixture, p90Shift }: Forecaster,
  series: LoadSeries,
  options: ForecastOptions,
): LoadForecast => {
  const { horizon } = options
  const encoder = createEncoder(series, fit, options)
  const origin = series.values.length - 1
  const predictor = createPredictor(weights)
  try {
    const answers = answerAll(predictor, encoder, [origin])
    const said = horizon.spans.map((_, n) => {
      const [network, p90] = answers.subarray(n * QUANTILES.length) as unknown as [number, number]
      const p50 = listen(mixture, [network, 0, encoder.answer(origin, n, fit.steady)])
      return { p50, p90: Math.max(p50, p90 + p90Shift) }
    })
    const total = (quantile: 'p50' | 'p90') =>
      said.map((answer, n) => encoder.work(origin, n, answer[quantile]))
    return {
      p50Ms: spreadOverMinutes(horizon, total('p50')),
      p90Ms: spreadOverMinutes(horizon, total('p90')),
    }
  } finally {
    predictor.dispose()
  }
}
