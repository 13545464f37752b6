import { percentile } from '../report.ts'

/** What is measured of each contender: the rows of the first table. */
export type Metric = {
  readonly key: string
  readonly title: string
  readonly unit: string
  readonly better: 'more' | 'less'
}

const more = <Key extends string>(key: Key, title: string, unit = 'jobs/s') =>
  ({ key, title, unit, better: 'more' }) as const
const less = <Key extends string>(key: Key, title: string, unit: string) =>
  ({ key, title, unit, better: 'less' }) as const

export const METRICS = [
  more('drain_1', 'drain, 1 worker'),
  more('drain_4', 'drain, 4 workers'),
  more('enqueue_one', 'enqueue one by one'),
  more('enqueue_batch', 'enqueue in batches of 1,000'),
  more('enqueue_concurrent', 'enqueue, 50 submitters'),
  less('pickup_p50', 'pickup when idle, p50', 'ms'),
  less('pickup_p99', 'pickup when idle, p99', 'ms'),
  more('steady_4', 'drain, 4 workers, middle of it'),
  more('long_queue', 'the same with a long queue'),
  more('huge_queue', 'the same with a very long queue'),
  more('huge_finished', 'the same with as many finished'),
  more('huge_share', 'very long queue / short one beside it', '×'),
  more('finished_share', 'as many finished / none beside it', '×'),
  more('snapshot', 'old snapshot: last fifth / first fifth', '×'),
  less('server_cpu', 'CPU of the server', 'µs/job'),
  less('node_cpu', 'CPU of the workers', 'µs/job'),
  less('wal_bytes', 'write-ahead log', 'B/job'),
] as const satisfies Metric[]

export type MetricKey = (typeof METRICS)[number]['key']

/** Of one contender; what does not apply to it is missing. */
export type Measurements = Partial<Record<MetricKey, number>>

/** What one step has measured. Pickups are times, of which a round makes percentiles. */
export type Sample = Omit<Measurements, 'pickup_p50' | 'pickup_p99'> & { pickup?: number[] }

/** A round: of what was measured several times the median, of pickups the percentiles of all of them. */
export const summarise = (samples: readonly Sample[]): Measurements => {
  const pickups = samples.flatMap(({ pickup }) => pickup ?? [])
  return {
    ...medianOf(samples.map(({ pickup, ...measured }) => measured)),
    ...(pickups.length > 0 && {
      pickup_p50: percentile(pickups, 0.5),
      pickup_p99: percentile(pickups, 0.99),
    }),
  }
}

export const medianOf = (all: readonly Measurements[]): Measurements => {
  const keys = new Set(all.flatMap((one) => Object.keys(one) as MetricKey[]))
  const median = (key: MetricKey): number =>
    percentile(
      all.flatMap((one) => one[key] ?? []),
      0.5,
    )
  return Object.fromEntries([...keys].map((key) => [key, median(key)]))
}

/** Of each contender, by its key. */
export type Standings = Readonly<Record<string, Measurements>>

export const SUBJECT = 'smartqueue'
/** An earlier commit of it. */
export const BEFORE = 'before'

export const isPeer = (key: string): boolean => key !== SUBJECT && key !== BEFORE

/** The best of the peers at something, or undefined if none was measured. */
export const bestPeer = (standings: Standings, metric: Metric): number | undefined => {
  const values = Object.entries(standings)
    .filter(([key]) => isPeer(key))
    .flatMap(([, measured]) => measured[metric.key as MetricKey] ?? [])
  if (values.length === 0) return undefined
  return metric.better === 'more' ? Math.max(...values) : Math.min(...values)
}

/** How many times better than that peer; below 1 it is worse. */
export const timesBetter = (metric: Metric, ours?: number, theirs?: number): number | undefined => {
  if (ours === undefined || theirs === undefined) return undefined
  return metric.better === 'more' ? ours / theirs : theirs / ours
}
