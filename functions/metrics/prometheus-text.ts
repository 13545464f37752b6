/** What Prometheus reads: the text format, version 0.0.4. */

export const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8'

export type Sample = {
  /** Of a histogram: `_bucket`, `_sum` or `_count`. */
  suffix?: string
  labels?: Readonly<Record<string, string>>
  value: number
}

export type Metric = {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  samples: readonly Sample[]
}

/** One of which nothing is known is left out. */
export const renderMetrics = (metrics: readonly Metric[]): string => metrics.map(renderMetric).join('')

const renderMetric = ({ name, help, type, samples }: Metric): string => {
  if (samples.length === 0) return ''
  const lines = samples.map(
    ({ suffix = '', labels = {}, value }) =>
      `${name}${suffix}${renderLabels(labels)} ${renderValue(value)}\n`,
  )
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

const renderLabels = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const renderValue = (value: number): string => (value === Infinity ? '+Inf' : String(value))

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

/** Beyond 2^22 ms, more than an hour, all are alike. */
const LARGEST_POWER = 22

/**
 * Counts by `log_bucket` of milliseconds as the samples of a histogram of seconds. Its bounds are powers of two milliseconds,
 * where every fourth bucket ends: so what is below a bound is counted exactly.
 */
export const histogramOf = (counts: readonly number[], sumMs: number): Sample[] => {
  const below = (buckets: number): number => counts.slice(0, buckets).reduce((sum, count) => sum + count, 0)
  const bounds = Array.from({ length: LARGEST_POWER + 1 }, (_, power) => ({
    suffix: '_bucket',
    labels: { le: String(2 ** power / 1000) },
    value: below(4 * power + 1),
  }))
  const all = below(counts.length)
  return [
    ...bounds,
    { suffix: '_bucket', labels: { le: '+Inf' }, value: all },
    { suffix: '_sum', value: sumMs / 1000 },
    { suffix: '_count', value: all },
  ]
}
