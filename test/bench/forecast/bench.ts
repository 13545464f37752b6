import { begin } from '../../../worker-runtime/forecast/forecaster.ts'
import { horizonOf } from '../../../worker-runtime/forecast/horizon.ts'
import { CALENDAR } from '../../../worker-runtime/forecast/load-series.ts'
import { type Evaluation, evaluate, whyUnusable } from '../../../worker-runtime/forecast/verdict.ts'
import { useWasmBackend } from '../../../worker-runtime/learning/wasm-backend.ts'
import type { BenchOptions, BenchReport } from '../report.ts'
import { madeUpWorkloads, tracedWorkloads, type Workload } from './workloads.ts'

/** The default of SMARTQUEUE_LEAD_SECONDS. */
const LEAD_SECONDS = 75
const DAYS = 15
const QUICK_DAYS = 3
/** A Monday, in minutes since 1970. */
const FIRST_MINUTE = 4 * CALENDAR.day + 2_900 * CALENDAR.week

type Row = {
  workload: string
  history_minutes: number
  seconds: number
  /** Null: it drives scaling. */
  unusable_because: string | null
} & Partial<Evaluation>

/**
 * How well the load within the lead time is forecast, as the leader does it: begun with the older part of a history, and led
 * through the newer part, judged on each stretch before it is trained on it.
 */
export const benchForecast = async ({ say, quick, traces }: BenchOptions): Promise<BenchReport> => {
  await useWasmBackend()
  const traced = await tracedWorkloads(traces)
  if (traced.length === 0) say(`There are no traces in ${traces}: only made-up workloads are forecast.`)
  const rows: Row[] = []
  for (const workload of [...madeUpWorkloads(quick ? QUICK_DAYS : DAYS), ...(quick ? [] : traced)]) {
    say(`Forecasting ${workload.name}, ${workload.values.length} minutes…`)
    rows.push(await forecastOne(workload, quick))
  }
  return { data: { lead_seconds: LEAD_SECONDS, workloads: rows }, text: textOf(rows) }
}

const forecastOne = async ({ name, values }: Workload, quick: boolean): Promise<Row> => {
  const startedAt = performance.now()
  const begun = await begin(
    { firstMinute: FIRST_MINUTE, values },
    {
      horizon: horizonOf(LEAD_SECONDS),
      calendar: CALENDAR,
      pause: async () => {},
      ...(quick && { steps: { first: 40, round: 5 } }),
    },
  )
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10
  const told = { workload: name, history_minutes: values.length, seconds }
  if (!('forecaster' in begun)) return { ...told, unusable_because: begun.unusableBecause }
  const { record } = begun.forecaster
  return { ...told, unusable_because: whyUnusable(record), ...evaluate(record) }
}

const HEADER = [
  'workload',
  'forecast',
  'last hour',
  'seasonal',
  'steady',
  'foreseen',
  'p90 covers',
  'drives scaling',
]

const textOf = (rows: readonly Row[]): string => {
  const cells = rows.map(({ workload, errors, foreseen, coverage, unusable_because: reason }) => [
    workload,
    ...[errors?.lstm, errors?.last_hour, errors?.seasonal, errors?.steady, foreseen, coverage].map(percent),
    reason === null ? 'yes' : 'no',
  ])
  const all = [HEADER, ...cells]
  const widths = HEADER.map((_, n) => Math.max(...all.map((row) => row[n]?.length ?? 0)))
  const lines = all.map((row) =>
    row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join('  '),
  )
  const reasons = rows.flatMap(({ workload, unusable_because: reason }) =>
    reason ? [`${workload}: ${reason}`] : [],
  )
  return [
    `Mean absolute error of the work within ${LEAD_SECONDS} s (whole minutes), as a share of that work:`,
    ...lines,
    '',
    ...reasons,
  ].join('\n')
}

const percent = (share: number | undefined): string =>
  share === undefined ? '–' : `${(100 * share).toFixed(1)} %`
