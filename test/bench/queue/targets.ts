import { isPeer, type Measurements, type MetricKey, type Standings, SUBJECT } from './metrics.ts'

export type Target = {
  readonly what: string
  /** What the measured number must not be below; above, for a time. */
  readonly wanted: number
  readonly measured: number | undefined
  /** Undefined if it was not measured in this run. */
  readonly reached: boolean | undefined
}

/** What SmartQueue sets out to reach, as ratios of numbers of the same run: machines differ, ratios hardly. */
export const checkTargets = (standings: Standings): Target[] => {
  const ours = standings[SUBJECT] ?? {}
  const of = (peer: string): Measurements => standings[peer] ?? {}
  const times = (metric: MetricKey, peer: string): number | undefined => ratio(ours[metric], of(peer)[metric])
  const bestOf = (metric: MetricKey, peers: readonly string[]): number | undefined => {
    const found = peers.flatMap((peer) => of(peer)[metric] ?? [])
    return found.length === 0 ? undefined : Math.max(...found)
  }
  const peers = Object.keys(standings).filter(isPeer)
  const onPostgres = peers.filter((key) => key !== 'bullmq')
  return [
    atLeast(
      'drain, 4 workers: × graphile-worker with local queue',
      1.3,
      times('drain_4', 'graphile_local_queue'),
    ),
    atLeast('drain, 4 workers: × graphile-worker', 12, times('drain_4', 'graphile_default')),
    atLeast('drain, 4 workers: × pg-boss in batches of 500', 2, times('drain_4', 'pg_boss')),
    atLeast('drain, 4 workers: × BullMQ', 3, times('drain_4', 'bullmq')),
    atLeast('very long queue: × empty tables', 0.9, ours.huge_share),
    atLeast('as many finished: × empty tables', 0.9, ours.finished_share),
    atLeast('old snapshot: last fifth × first fifth', 0.9, ours.snapshot),
    atLeast(
      'enqueue in batches: × best peer',
      1.2,
      ratio(ours.enqueue_batch, bestOf('enqueue_batch', peers)),
    ),
    atLeast(
      'enqueue, 50 submitters: × best peer on Postgres',
      10,
      ratio(ours.enqueue_concurrent, bestOf('enqueue_concurrent', onPostgres)),
    ),
    atMost('pickup when idle, p50: ms', 3, ours.pickup_p50),
    atMost(
      'pickup when idle, p99: × graphile-worker',
      1,
      ratio(ours.pickup_p99, of('graphile_default').pickup_p99),
    ),
  ]
}

const ratio = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : a / b

const atLeast = (what: string, wanted: number, measured: number | undefined): Target => ({
  what: `${what} ≥ ${wanted}`,
  wanted,
  measured,
  reached: measured === undefined ? undefined : measured >= wanted,
})

const atMost = (what: string, wanted: number, measured: number | undefined): Target => ({
  what: `${what} ≤ ${wanted}`,
  wanted,
  measured,
  reached: measured === undefined ? undefined : measured <= wanted,
})
