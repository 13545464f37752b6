import type { Query } from '../query.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import type { ExchangeShape } from './exchange-shape.ts'
import { exchangeText } from './exchange-text.ts'
import { exchangeValues } from './exchange-values.ts'
import type { JobFailure } from './jobs.ts'

/** Names a held job. Every write of a worker carries the token: a former holder matches no row. */
export type LeaseKey = { job_id: string; token: string }

/** What a worker was told of a job and says again when it ends, so that nothing need be read for it. */
export type HeldKey = LeaseKey & { org_id: string; stream_id: string; attempt: number }

/**
 * How an attempt ended. `ranMs` is its runtime by the worker's clock; `delayMs` is the wait before it is ready again.
 * `announced`: the database knows already that it was started.
 */
export type EndedAttempt = HeldKey & { ranMs: number; announced: boolean } & (
    | { state: 'completed'; resultJson: string | null }
    | { state: 'failed'; error: JobFailure }
    | { state: 'retrying'; error: JobFailure; delayMs: number }
    | { state: 'pending'; delayMs: number }
  )

/** A part of the order to look through: from the first position up to, and without, the second. */
export type Segment = { fromLane: number; fromKey: number; toLane: number; toKey: number }

export type Claim = {
  limit: number
  /** All of them are started at once. Otherwise the worker says which, as far as they run long enough to matter. */
  starts: boolean
  types: readonly string[]
  /** By rank, or the oldest first. */
  order: 'rank' | 'age'
  /** For the order of rank. */
  segments: readonly Segment[]
  /** For the order of age. */
  ageFromKey: number
  /**
   * Jobs of any size, as many as fit into what is free, and `ahead` jobs of the default size beyond that. Without it
   * only jobs that are not bigger than the default: so many of them fit, and nothing need be summed.
   */
  sized: { freeCpuUnits: number; freeMemoryMb: number; ahead: number } | null
}

type ClaimedRow = {
  job_id: string
  payload: Record<string, unknown>
  timeout_seconds: number | null
}

export type ClaimedJob = ClaimedRow & {
  org_id: string
  stream_id: string
  type: string
  name: string
  token: string
  attempt: number
  /** Counts as started from the claim on. */
  started: boolean
  cpu_units: number
  memory_mb: number
  checkpoint: unknown
}

/** What the first row carries besides: which ends came too late, and what the next claim should know. */
export type ExchangeNews = {
  /** Of the new lease; null if nothing was claimed. */
  token: string | null
  /** The claimed jobs. Where a list with a value for each of them is null, they all have the usual one. */
  job_ids: string[] | null
  /** Usually 1. */
  attempts: number[] | null
  /** Lower goes first; usually all the same. */
  places: number[] | null
  /** Usually that of the only stream. */
  stream_ids: number[] | null
  /** Usually yes. */
  started: boolean[] | null
  /** In a claim by size; else none is bigger than the default. */
  cpu_units?: number[] | null
  memory_mb?: number[] | null
  /** In a claim by size: room is kept for a job that has a reservation with this worker. */
  reserved?: boolean
  /** Predicted work claimed. */
  predicted_ms: number | null
  /** The claimed jobs' streams by id: organisation, type and name. */
  streams: Record<string, [string, string, string]> | null
  /** The smallest key claimed of each lane. Not of what was urgent: that may stand in the middle of its lane. */
  floors: Record<string, number> | null
  /** Of the claimed jobs that have one. */
  checkpoints: Record<string, unknown> | null
  /** Ended jobs whose lease was no longer held. */
  lost: string[] | null
  /** Dependents that the ends have made ready. */
  became_ready: number
  /** Jobs wait that are bigger than the default: a claim that is not by size passes over them. */
  big_waiting: boolean
  /** Something is paused: a claim may have passed over it. */
  paused: boolean
}

export type ExchangeRow = { news: ExchangeNews } | ({ news: null } & ClaimedRow)

/**
 * Puts the answer together. The database answers the leases in their order and the jobs in its own: to join them there
 * costs one more probe of an index for each job.
 */
export const readExchange = (rows: readonly ExchangeRow[]): { news: ExchangeNews; claimed: ClaimedJob[] } => {
  let news: ExchangeNews | undefined
  const jobs = new Map<string, ClaimedRow>()
  for (const row of rows) {
    if (row.news) news = row.news
    else jobs.set(row.job_id, row)
  }
  if (!news) throw new Error('An exchange answers at least one row')
  return { news, claimed: inOrder(news).flatMap((n) => toJob(jobs, news, n)) }
}

/** Positions of the claimed jobs, the first to start first. */
const inOrder = ({ job_ids, places }: ExchangeNews): number[] => {
  const positions = Array.from(job_ids ?? [], (_, n) => n)
  if (places) positions.sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0))
  return positions
}

const toJob = (jobs: ReadonlyMap<string, ClaimedRow>, news: ExchangeNews, n: number): ClaimedJob | [] => {
  const row = jobs.get(news.job_ids?.[n] ?? '')
  const streamId = String(news.stream_ids?.[n] ?? Object.keys(news.streams ?? {})[0])
  const stream = news.streams?.[streamId]
  if (!row || !stream) return []
  return {
    job_id: row.job_id,
    stream_id: streamId,
    org_id: stream[0],
    type: stream[1],
    name: stream[2],
    payload: row.payload,
    timeout_seconds: row.timeout_seconds,
    token: news.token ?? '',
    attempt: news.attempts?.[n] ?? 1,
    started: news.started?.[n] ?? true,
    cpu_units: news.cpu_units?.[n] ?? DEFAULT_RESOURCES.cpu_units,
    memory_mb: news.memory_mb?.[n] ?? DEFAULT_RESOURCES.memory_mb,
    checkpoint: news.checkpoints?.[row.job_id] ?? null,
  }
}

export type Exchange = {
  workerId: string
  leaseSeconds: number
  ended: readonly EndedAttempt[]
  /** Claimed ahead, started since, and still running. */
  started: readonly (LeaseKey & { ranMs: number })[]
  /** Leases of which no job is held any more once the ended ones have ended. */
  closed: readonly string[]
  claim: Claim
}

/**
 * Outcomes go in and jobs come out, in one statement. Ended attempts that the worker still holds are recorded, their
 * streams learn from them, their dependents come closer; then the next jobs are claimed and leased, all under one new
 * lease.
 *
 * Its text has a few shapes: what an exchange does not need is left out, because with hundreds of jobs in one
 * statement each part costs.
 */
export const exchangeJobs = (exchange: Exchange): Query<ExchangeRow> => {
  const { ended, claim } = exchange
  const shape: ExchangeShape = {
    order: claim.order,
    sized: claim.sized !== null,
    results: ended.some((end) => end.state === 'completed' && end.resultJson !== null),
    revises: exchange.started.length > 0 || ended.some(({ state }) => state !== 'completed'),
  }
  const { name, text, parameters } = exchangeText(shape)
  const values = exchangeValues(exchange)
  return { name, text, values: parameters.map((parameter) => values[parameter]()) }
}

export type RetryPolicyRow = {
  job_id: string
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
}

/** Looked up when an attempt has failed: most do not. */
export const getRetryPolicies = (
  jobs: readonly { org_id: string; job_id: string }[],
): Query<RetryPolicyRow> => ({
  name: 'get-retry-policies',
  text: `
    select id as job_id, max_attempts, initial_delay_seconds, backoff_multiplier
    from jobs
    where (org_id, id) in (select org_id, id from unnest($1::uuid[], $2::uuid[]) as j (org_id, id))`,
  values: [jobs.map(({ org_id }) => org_id), jobs.map(({ job_id }) => job_id)],
})
