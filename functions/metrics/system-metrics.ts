import type { AutoscaleRow } from '../../db/queries/autoscale.ts'
import type { EdgeTotal, JobTotals, MetricsRow } from '../../db/queries/metrics.ts'
import { scalingSignal } from '../../db/rules/autoscale.ts'
import { PRIORITIES } from '../../db/rules/priority.ts'
import { PREDICTION_FAULTS } from '../prediction/faults.ts'
import { DELIVERIES, DELIVERY_OUTCOMES, DUPLICATES } from './edge-totals.ts'
import { histogramOf, type Metric, type Sample } from './prometheus-text.ts'

const SOURCES = ['lstm', 'series', 'type', 'default']
const STATUSES = ['pending', 'blocked', 'ready', 'running', 'retrying']
const WORKER_STATUSES = ['online', 'draining', 'offline']
const FORECASTS = ['lstm', 'last_hour', 'seasonal']

/**
 * Metrics of the whole system: docs/metrics.md has a row for each. Labels have the values that are listed here, and none that
 * users make up; what is not known yet is left out.
 */
export const systemMetrics = (row: MetricsRow, autoscale: AutoscaleRow | undefined): Metric[] => [
  ...ofJobs(row.totals ?? NO_JOBS, row.edge),
  ...ofQueue(row),
  ...ofPredictions(row.learning),
  ...ofWorkers(row),
  ...(autoscale ? ofScaling(autoscale) : []),
  gauge('load_forecast_usable', 'Whether the load forecast may scale workers.', row.forecast?.usable ? 1 : 0),
  {
    ...gauge(
      'load_forecast_error',
      'Error of the load forecast and of simple ones, on minutes that it had not seen.',
    ),
    samples: known('forecast', FORECASTS, errorsIn(row.forecast?.evaluation)),
  },
]

const ofJobs = (totals: JobTotals, edge: readonly EdgeTotal[]): Metric[] => [
  counter('jobs_submitted_total', 'Jobs that were submitted.', totals.submitted),
  counter('jobs_completed_total', 'Jobs that completed.', totals.completed),
  counter('jobs_failed_total', 'Attempts that failed, whatever followed.', totals.failed_attempts),
  counter('jobs_dead_total', 'Jobs that failed for good.', totals.dead),
  counter('jobs_retried_total', 'Times that a job was to be tried again.', totals.retried),
  counter('jobs_cancelled_total', 'Jobs that were cancelled.', totals.cancelled),
  counter('lease_losses_total', 'Running jobs whose worker vanished.', totals.lost_leases),
  {
    ...counter('jobs_duplicate_total', 'Jobs that were sent again under their idempotency key.'),
    samples: [{ value: totalOf(edge, DUPLICATES, '') }],
  },
  {
    ...counter('webhook_deliveries_total', 'Deliveries to webhook sources, by what became of them.'),
    samples: DELIVERY_OUTCOMES.map((outcome) => ({
      labels: { outcome },
      value: totalOf(edge, DELIVERIES, outcome),
    })),
  },
  histogram('job_execution_seconds', 'How long completed jobs ran.', totals.runtimes, totals.runtime_ms),
  histogram(
    'job_wait_seconds',
    'How long jobs waited that ended with their first attempt.',
    totals.waits,
    totals.wait_ms,
  ),
]

const ofQueue = (row: MetricsRow): Metric[] => [
  {
    ...gauge('queue_depth', 'Jobs that have not ended, by class and status.'),
    samples: row.queue ? depthsOf(row.queue.depths) : [],
  },
  gauge(
    'oldest_ready_seconds',
    'How long the oldest job that could be claimed was ready.',
    row.queue?.oldest_ready_seconds,
  ),
  gauge('jobs_in_flight', 'Jobs that run.', row.in_flight),
  gauge(
    'expired_leases',
    'Jobs whose lease has run out, and that nobody has taken over yet.',
    row.expired_leases,
  ),
  gauge(
    'slow_jobs',
    'Jobs that have been running for longer than their predicted 99th percentile.',
    row.slow_jobs,
  ),
  gauge(
    'predicted_backlog_seconds',
    'Predicted work of jobs that are ready or run.',
    row.sums.backlog_ms / 1000,
  ),
  gauge(
    'backlog_drain_seconds',
    'The predicted backlog over the slots of live workers.',
    row.sums.backlog_ms && row.sums.backlog_ms / 1000 / row.slots,
  ),
  gauge('waiting_orgs', 'Organisations with jobs that could start.', row.sums.waiting_orgs),
  gauge(
    'org_share_shortfall_seconds',
    'The longest time that a waiting organisation has been given less than half of its share.',
    row.sums.shortfall_seconds,
  ),
]

const ofPredictions = ({
  learned,
  by_source,
  accuracy,
  version,
  faults,
}: MetricsRow['learning']): Metric[] => {
  const percent = numberIn(accuracy, 'mape')
  return [
    gauge(
      'prediction_mape',
      'Mean absolute error of p50 over runtime: 0.25 is 25 %.',
      percent && percent / 100,
    ),
    gauge(
      'prediction_p90_coverage',
      'The share of recent runtimes below their predicted 90th percentile.',
      numberIn(accuracy, 'coverage'),
    ),
    gauge(
      'prediction_drift',
      'How far off the newest predictions are to one side: the absolute mean of ln(runtime / p50).',
      numberIn(accuracy, 'drift'),
    ),
    {
      ...gauge(
        'prediction_mean_abs_log_error',
        'Mean absolute error of ln(runtime) over recent executions, by predictor.',
      ),
      samples: labelled('predictor', errorsIn(accuracy)),
    },
    {
      ...counter('predictions_total', 'Predictions of jobs that have run, by what they came from.'),
      samples: filled('source', SOURCES, by_source),
    },
    {
      ...counter(
        'prediction_faults_total',
        'Times that the functions predicted without the network, or not at all, by reason.',
      ),
      samples: filled('reason', PREDICTION_FAULTS, faults),
    },
    counter('executions_learned_total', 'Executions that were learned from.', learned),
    gauge('model_version', 'The version of the network in use, 0 while there is none.', version),
  ]
}

const ofWorkers = ({ workers, slots, leader }: MetricsRow): Metric[] => [
  { ...gauge('workers', 'Workers, by status.'), samples: filled('status', WORKER_STATUSES, workers) },
  gauge('slots', 'Jobs that live workers can run at a time.', slots),
  gauge('leader_term', 'The newest term of a leader.', leader?.term),
  gauge('leader_silent_seconds', 'Since the leader was last seen.', leader?.silent_seconds),
]

const ofScaling = (row: AutoscaleRow): Metric[] => {
  const { B, R, F, T, desired } = scalingSignal(row)
  return [
    gauge('autoscale_backlog_seconds', 'Predicted work that is there (B).', B),
    gauge('autoscale_arriving_seconds', 'Predicted work to start within the drain goal (R).', R),
    gauge('autoscale_forecast_seconds', 'Work that is expected within the lead time (F).', F),
    gauge('autoscale_target_seconds', 'Work that one worker gets done within the drain goal (T).', T),
    gauge('autoscale_desired_workers', 'Workers that there should be.', desired),
    gauge('autoscale_min_workers', 'Workers that there are at least.', row.min_workers),
    gauge('autoscale_max_workers', 'Workers that there may be.', row.max_workers),
    gauge('autoscale_snapshot_age_seconds', 'Since the leader has looked at the load.', row.age_seconds),
  ]
}

const NO_JOBS: JobTotals = {
  submitted: 0,
  completed: 0,
  failed_attempts: 0,
  dead: 0,
  retried: 0,
  cancelled: 0,
  lost_leases: 0,
  runtimes: [],
  runtime_ms: 0,
  waits: [],
  wait_ms: 0,
}

const metric =
  (type: Metric['type']) =>
  (name: string, help: string, value?: number): Metric => ({
    name: `smartqueue_${name}`,
    help,
    type,
    samples: value === undefined ? [] : [{ value }],
  })

const counter = metric('counter')
const gauge = metric('gauge')

const histogram = (name: string, help: string, counts: readonly number[], sumMs: number): Metric => ({
  ...metric('histogram')(name, help),
  samples: histogramOf(counts, sumMs),
})

const totalOf = (edge: readonly EdgeTotal[], name: string, label: string): number =>
  edge.find((one) => one.name === name && one.label === label)?.total ?? 0

const depthsOf = (depths: NonNullable<MetricsRow['queue']>['depths']): Sample[] =>
  PRIORITIES.flatMap((priority) =>
    STATUSES.map((status) => ({
      labels: { class: priority, status },
      value: depths.find((one) => one.class === priority && one.status === status)?.jobs ?? 0,
    })),
  )

/** JSON of the database's, as whoever wrote it meant it. */
const numberIn = (values: unknown, name: string): number | undefined => {
  const value = (values as Record<string, unknown> | null | undefined)?.[name]
  return typeof value === 'number' ? value : undefined
}

const errorsIn = (values: unknown): Record<string, unknown> =>
  ((values as Record<string, unknown> | null | undefined)?.errors ?? {}) as Record<string, unknown>

const labelled = (label: string, values: Record<string, unknown>): Sample[] =>
  known(label, Object.keys(values), values)

/** Of these, those that there is a number of. */
const known = (label: string, names: readonly string[], values: Record<string, unknown>): Sample[] =>
  names.flatMap((name) => {
    const value = numberIn(values, name)
    return value === undefined ? [] : [{ labels: { [label]: name }, value }]
  })

/** All of these, 0 if there is no number. */
const filled = (label: string, names: readonly string[], values: Record<string, unknown>): Sample[] =>
  names.map((name) => ({ labels: { [label]: name }, value: numberIn(values, name) ?? 0 }))
