/** What is measured of each contender: the rows of the first table. */
export type Metric = {
  readonly key: string
  readonly title: string
  readonly unit: string
  readonly better: 'more' | 'less'
}

const more = (key: string, title: string, unit = 'jobs/s') => ({ key, title, unit, better: 'more' }) as const
const less = (key: string, title: string, unit: string) => ({ key, title, unit, better: 'less' }) as const

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

/** Of each contender, by its key. */
export type Standings = Readonly<Record<string, Measurements>>

export const SUBJECT = 'smartqueue'

/** The best of the peers at something, or undefined if none was measured. */
export const bestPeer = (standings: Standings, metric: Metric): number | undefined => {
  const values = Object.entries(standings)
    .filter(([key]) => key !== SUBJECT)
    .flatMap(([, measured]) => measured[metric.key as MetricKey] ?? [])
  if (values.length === 0) return undefined
  return metric.better === 'more' ? Math.max(...values) : Math.min(...values)
}

/** How many times better than that peer; below 1 it is worse. */
export const timesBetter = (metric: Metric, ours?: number, theirs?: number): number | undefined => {
  if (ours === undefined || theirs === undefined) return undefined
  return metric.better === 'more' ? ours / theirs : theirs / ours
}
