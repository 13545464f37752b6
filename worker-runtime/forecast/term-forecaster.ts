/**
 * Forecasts the load for one term of the leader: once a minute a forecast, and every half hour a round of judging and training,
 * from where the leader before left off. All that it writes carries its term.
 */
import {
  type LoadRow,
  readLoad,
  recallForecaster,
  storeForecast,
  storeForecaster,
} from '../../db/queries/load.ts'
import type { Run } from '../../db/query.ts'
import type { Logger } from '../logger.ts'
import { forecastLoad, type LoadForecast } from './forecast.ts'
import { begin, type Forecaster, type ForecastOptions, goOn, isOutdated, roundMinutes } from './forecaster.ts'
import { horizonOf } from './horizon.ts'
import { CALENDAR, type LoadSeries, toSeries } from './load-series.ts'
import { packForecaster, unpackForecaster } from './stored-forecaster.ts'
import type { Pause } from './training.ts'
import { evaluate, whyUnusable } from './verdict.ts'

export type TermForecaster = {
  /** Answers the milliseconds until the next. */
  step(): Promise<number>
}

export type TermForecasterOptions = {
  run: Run
  term: string
  logger: Logger
  leadSeconds: number
  pause: Pause
  steps?: ForecastOptions['steps'] & object
}

const SECOND = 1_000
/** After a minute is over, until what came in it has been added up as a rule. */
const ROLLUP_SECONDS = 5
/** Minutes that are read again, as something may have been added to them late. */
const LATE_MINUTES = 30
/** Without enough history it is looked for again after so many minutes. */
const LOOK_AGAIN_MINUTES = 10

export const createTermForecaster = (options: TermForecasterOptions): TermForecaster => {
  const { run, term, logger } = options
  const horizon = horizonOf(options.leadSeconds)
  const settings: ForecastOptions = {
    horizon,
    calendar: CALENDAR,
    pause: options.pause,
    ...(options.steps && { steps: options.steps }),
  }
  const nothing: LoadForecast = {
    p50Ms: Array(horizon.minutes).fill(0),
    p90Ms: Array(horizon.minutes).fill(0),
  }
  let forecaster: Forecaster | undefined
  let isLoaded = false
  let series: LoadSeries | undefined
  let trainAtMinute = 0

  /** False: the term is over. */
  const load = async (): Promise<boolean> => {
    const [row] = await run(recallForecaster(term))
    if (!row) return false
    forecaster =
      row.forecaster === null ? undefined : unpackForecaster(Buffer.from(row.forecaster, 'base64'), horizon)
    trainAtMinute = forecaster ? forecaster.knownTo + roundMinutes(settings) : 0
    isLoaded = true
    return true
  }

  const read = async (): Promise<{ now: LoadRow; known: LoadSeries }> => {
    const end = series ? series.firstMinute + series.values.length : 0
    const isPart = end > LATE_MINUTES
    const [now] = await run(readLoad(isPart ? end - LATE_MINUTES : null))
    if (!now) throw new Error('The load is one row')
    const rows = now.minutes.map((minute, n) => ({ minute, workMs: now.work_ms[n] ?? 0 }))
    const known = isPart && series ? append(series, rows, now.end_minute) : toSeries(rows, now.end_minute)
    series = known
    return { now, known }
  }

  const forecast = (known: LoadSeries): LoadForecast =>
    forecaster && known.values.length > 0 ? forecastLoad(forecaster, known, settings) : nothing

  /** False: the term is over. */
  const store = async (known: LoadSeries, fromMinute: number): Promise<boolean> =>
    (await run(storeForecast({ term, fromMinute, ...forecast(known) }))).length > 0

  /** False: the term is over. */
  const trainOn = async (known: LoadSeries, fromMinute: number): Promise<boolean> => {
    const begun =
      forecaster && !isOutdated(forecaster, known, settings)
        ? { forecaster: await goOn(forecaster, known, settings) }
        : await begin(known, settings)
    forecaster = 'forecaster' in begun ? begun.forecaster : undefined
    trainAtMinute = fromMinute + (forecaster ? roundMinutes(settings) : LOOK_AGAIN_MINUTES)
    const unusableBecause =
      'forecaster' in begun ? whyUnusable(begun.forecaster.record) : begun.unusableBecause
    const evaluation = forecaster ? { window_minutes: horizon.window, ...evaluate(forecaster.record) } : {}
    await run(
      storeForecaster({
        term,
        unusableBecause,
        evaluation,
        forecaster: forecaster ? Buffer.from(packForecaster(forecaster, horizon)).toString('base64') : null,
      }),
    )
    logger.debug('load forecast trained', { unusable_because: unusableBecause, ...evaluation })
    return store(known, fromMinute)
  }

  const step = async (): Promise<number> => {
    if (!isLoaded && !(await load())) return 60 * SECOND
    const { now, known } = await read()
    // Of minutes that are not added up yet it is a forecast, too.
    const fromMinute = known.firstMinute + known.values.length
    const isTrainingDue = fromMinute >= trainAtMinute
    // First the forecast: training takes a while.
    if (forecaster || !isTrainingDue) isLoaded = await store(known, fromMinute)
    if (!isLoaded || !isTrainingDue) return untilNextMinute(now.seconds_into)
    isLoaded = await trainOn(known, fromMinute)
    // All of it is read again: what is too old is left behind.
    series = undefined
    return SECOND
  }

  return { step }
}

const untilNextMinute = (secondsInto: number): number =>
  Math.max(SECOND, (60 + ROLLUP_SECONDS - secondsInto) * SECOND)

/** The newest minutes again, and those after them. */
const append = (
  { firstMinute, values }: LoadSeries,
  rows: readonly { minute: number; workMs: number }[],
  endMinute: number,
): LoadSeries => {
  const end = Math.max(endMinute, firstMinute + values.length)
  const all = new Float64Array(end - firstMinute)
  all.set(values)
  for (const { minute, workMs } of rows) {
    if (minute >= firstMinute && Number.isFinite(workMs)) all[minute - firstMinute] = Math.max(0, workMs)
  }
  return { firstMinute, values: all }
}
