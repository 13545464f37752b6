import type { Query } from '../query.ts'
import type { ExchangeRow } from './exchange-news.ts'
import type { ExchangeShape } from './exchange-shape.ts'
import { exchangeText } from './exchange-text.ts'
import { exchangeValues } from './exchange-values.ts'
import type { JobFailure } from './jobs.ts'

/** Names a held job. Every write of a worker carries the token: a former holder matches no row. */
export type LeaseKey = { job_id: string; token: string }

/** What a worker was told of a job and says again when it ends, so that nothing need be read for it. */
export type HeldKey = LeaseKey & { org_id: string; series_id: string; attempt: number }

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
  /**
   * Something is paused, or has a limit of running jobs: whether that keeps a job from being claimed is looked up.
   * Without it nothing is claimed while there is anything of the kind.
   */
  restricted: boolean
  /** By rank, or the oldest first. */
  order: 'rank' | 'age'
  /** In the order of rank: by the newest estimates of some more than are taken. For few at a time. */
  reranked: boolean
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

export type Exchange = {
  workerId: string
  leaseSeconds: number
  ended: readonly EndedAttempt[]
  /** Claimed ahead, started since, and still running. */
  started: readonly (LeaseKey & { ranMs: number })[]
  /** Leases of which no job is held any more once the ended ones have ended. */
  closed: readonly string[]
  /**
   * How many jobs the leases of the ended ones were made with, if as far as the worker knows none has left them but by
   * completing. Null if some has, or if it is not sure: then each is looked for.
   */
  leaseJobs: number | null
  /** The worker exports spans. */
  traced?: boolean
  claim: Claim
}

/**
 * Outcomes go in and jobs come out, in one statement. Ended attempts that the worker still holds are recorded, their
 * series learn from them, their dependents come closer; then the next jobs are claimed and leased, all under one new
 * lease.
 *
 * Its text has a few shapes: what an exchange does not need is left out, because with hundreds of jobs in one
 * statement each part costs.
 */
export const exchangeJobs = (exchange: Exchange): Query<ExchangeRow> => {
  const { ended, claim } = exchange
  const shape: ExchangeShape = {
    order: claim.order,
    reranked: claim.reranked && claim.order === 'rank',
    sized: claim.sized !== null,
    restricted: claim.restricted,
    traced: exchange.traced ?? false,
    results: ended.some((end) => end.state === 'completed' && end.resultJson !== null),
    ends: endsOf(exchange),
  }
  const { name, text, parameters } = exchangeText(shape)
  const values = exchangeValues(exchange)
  return { name, text, values: parameters.map((parameter) => values[parameter]()) }
}

const endsOf = ({ ended, started, leaseJobs }: Exchange): ExchangeShape['ends'] => {
  if (ended.length === 0 && started.length === 0) return 'none'
  if (started.length > 0 || leaseJobs === null) return 'checked'
  return ended.every(({ state }) => state === 'completed') ? 'completed' : 'checked'
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
    from smartqueue.jobs
    where (org_id, id) in (select org_id, id from unnest($1::uuid[], $2::uuid[]) as j (org_id, id))`,
  values: [jobs.map(({ org_id }) => org_id), jobs.map(({ job_id }) => job_id)],
})
