import { countSlowJobs, getModelCard, type ModelCardRow } from '../../db/queries/model-card.ts'
import type { Run } from '../../db/query.ts'
import { calibrationOf, errorsOf } from './model-card.ts'

export type Metrics = { read(): Promise<string> }

/** Anybody may ask, and the database is asked only this often. */
const FRESH_MS = 5_000

export const createMetrics = (run: Run, now: () => number = Date.now): Metrics => {
  let text = ''
  let readAt = Number.NEGATIVE_INFINITY
  return {
    read: async () => {
      if (now() - readAt < FRESH_MS && text !== '') return text
      // Before asking: who comes meanwhile, or after a failure, gets the text before.
      readAt = now()
      const [[card], [slow]] = await Promise.all([run(getModelCard()), run(countSlowJobs())])
      if (!card || !slow) throw new Error('Nothing is known of the model')
      text = renderMetrics(card, slow.slow_jobs)
      return text
    },
  }
}

type Sample = { labels?: Record<string, string>; value: number }
type Metric = { name: string; help: string; type: 'counter' | 'gauge'; samples: Sample[] }

/** What Prometheus reads (text format 0.0.4). Only of the whole system: nobody's organisation is in it. */
export const renderMetrics = (card: ModelCardRow, slowJobs: number): string =>
  metricsOf(card, slowJobs).map(renderMetric).join('')

const metricsOf = (card: ModelCardRow, slowJobs: number): Metric[] => {
  const champion = card.versions.find(({ status }) => status === 'champion')
  const { p90_coverage } = calibrationOf(card)
  return [
    {
      name: 'smartqueue_predictions_total',
      help: 'Predictions of jobs that have run, by what they came from.',
      type: 'counter',
      samples: labelled('source', numbersOf(card.by_source)),
    },
    {
      name: 'smartqueue_prediction_faults_total',
      help: 'Times that the functions predicted without the network, or not at all, by reason.',
      type: 'counter',
      samples: card.faults.map(({ reason, faults }) => ({ labels: { reason }, value: faults })),
    },
    {
      name: 'smartqueue_model_version',
      help: 'The version of the network in use, 0 while there is none.',
      type: 'gauge',
      samples: [{ value: champion?.version ?? 0 }],
    },
    {
      name: 'smartqueue_prediction_p90_coverage',
      help: 'The share of recent runtimes below their predicted 90th percentile.',
      type: 'gauge',
      samples: p90_coverage === null ? [] : [{ value: p90_coverage }],
    },
    {
      name: 'smartqueue_prediction_mean_abs_log_error',
      help: 'Mean absolute error of ln(runtime) over recent executions, by predictor.',
      type: 'gauge',
      samples: labelled('predictor', Object.entries(errorsOf(card))),
    },
    {
      name: 'smartqueue_slow_jobs',
      help: 'Jobs that have been running for longer than their predicted 99th percentile.',
      type: 'gauge',
      samples: [{ value: slowJobs }],
    },
    {
      name: 'smartqueue_executions_learned_total',
      help: 'Executions that were learned from.',
      type: 'counter',
      samples: [{ value: card.learned }],
    },
  ]
}

const numbersOf = (values: Record<string, unknown>): [string, number][] =>
  Object.entries(values).flatMap(([name, value]) => (typeof value === 'number' ? [[name, value]] : []))

const labelled = (label: string, values: readonly [string, number][]): Sample[] =>
  values.map(([name, value]) => ({ labels: { [label]: name }, value }))

/** One that has no samples is left out. */
const renderMetric = ({ name, help, type, samples }: Metric): string => {
  if (samples.length === 0) return ''
  const lines = samples.map(({ labels = {}, value }) => `${name}${renderLabels(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

const renderLabels = (labels: Record<string, string>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
