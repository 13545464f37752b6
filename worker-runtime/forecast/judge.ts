import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import type { Encoder } from './encoder.ts'
import type { Forecaster } from './forecaster.ts'
import type { Calendar } from './load-series.ts'
import { judgeAnswers, listen } from './mixture.ts'
import { addJudged, type Stretch } from './record.ts'
import { NAMES } from './simple-forecasts.ts'
import { answerAll, QUANTILES } from './windows.ts'

/** A step of the p90 after each window: nine times as far up as down, so in the long run one of ten lies above. */
const P90_STEP = 0.03
const P90_QUANTILE = 0.9
/** It goes no further than so many ordinary errors: after a quiet month it must be back within hours. */
const P90_REACH = 4

const [LAST_HOUR, YESTERDAY, LAST_WEEK] = ['last_hour', 'yesterday', 'last_week'].map((name) =>
  NAMES.indexOf(name),
) as [number, number, number]

/**
 * Asks the forecaster for every window that began after what it knows and is over now. Who is listened to, and the p90's
 * shift, follow from window to window: of each, only those before it are known.
 */
export const judge = (
  forecaster: Forecaster,
  encoder: Encoder,
  calendar: Calendar,
): Pick<Forecaster, 'mixture' | 'p90Shift' | 'record'> => {
  const { horizon, firstMinute } = encoder
  const n = horizon.spans.indexOf(horizon.window)
  const record = forecaster.record.map((stretch): Stretch => ({ ...stretch, errors: { ...stretch.errors } }))
  let { mixture, p90Shift } = forecaster
  for (const { origin, answers } of answersSince(forecaster, encoder, n)) {
    const work = encoder.truth(origin, n)
    const errorOf = (answer: number): number => Math.abs(encoder.work(origin, n, answer) - work)
    const steady = encoder.answer(origin, n, forecaster.fit.steady)
    const [network, p90] = answers
    const opinions = [network, 0, steady]
    const said = listen(mixture, opinions)
    const forecast = encoder.work(origin, n, said)
    const isCovered = work <= encoder.work(origin, n, Math.max(said, p90 + p90Shift))
    const simple = [LAST_WEEK, YESTERDAY, LAST_HOUR].map((number) => encoder.answer(origin, n, number))
    // As long as there is no last week it is yesterday, and as long as there is no yesterday the last hour.
    const seasonal = simple.find((answer) => !Number.isNaN(answer)) ?? steady
    const lastHour = simple[2] as number
    const errors = {
      lstm: Math.abs(forecast - work),
      last_hour: errorOf(Number.isNaN(lastHour) ? steady : lastHour),
      seasonal: errorOf(seasonal),
      steady: errorOf(steady),
    }
    addJudged(record, { minute: firstMinute + origin, work, forecast, isCovered, errors }, calendar.hour / 2)
    mixture = judgeAnswers(mixture, opinions.map(errorOf))
    const shifted = p90Shift + P90_STEP * (isCovered ? P90_QUANTILE - 1 : P90_QUANTILE)
    p90Shift = Math.min(Math.max(shifted, -P90_REACH), P90_REACH)
  }
  return { mixture, p90Shift, record }
}

type Answers = { origin: number; answers: [p50: number, p90: number] }

const answersSince = ({ weights, knownTo }: Forecaster, encoder: Encoder, n: number): Answers[] => {
  const { horizon, firstMinute, length } = encoder
  const origins: number[] = []
  for (let origin = Math.max(0, knownTo - firstMinute - 1); origin + horizon.window < length; origin++) {
    origins.push(origin)
  }
  if (origins.length === 0) return []
  const predictor = createPredictor(weights)
  try {
    const all = answerAll(predictor, encoder, origins)
    return origins.map((origin, row) => {
      const at = (row * horizon.spans.length + n) * QUANTILES.length
      return { origin, answers: [all[at] as number, all[at + 1] as number] }
    })
  } finally {
    predictor.dispose()
  }
}
