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

export type ClaimedJob = {
  job_id: string
  org_id: string
  stream_id: string
  type: string
  name: string
  payload: Record<string, unknown>
  timeout_seconds: number | null
  token: string
  attempt: number
  /** Counts as started from the claim on. */
  started: boolean
  cpu_units: number
  memory_mb: number
  checkpoint: unknown
}

/** What an exchange answers: the claimed jobs, which ends came too late, and what the next claim should know. */
export type ExchangeNews = {
  /** Of the new lease; null if nothing was claimed. */
  token: string | null
  /** The claimed jobs, in the order in which the database found them. */
  jobs: {
    ids: string[] | null
    payloads: Record<string, unknown>[] | null
    /** Null if none of them has one. */
    timeouts: (number | null)[] | null
  } | null
  /** The same jobs in the order of the lists below, if there is one with a value for each job. */
  job_ids: string[] | null
  /** Null if all are 1. */
  attempts: number[] | null
  /** Lower goes first. Null if the order of the jobs is as good as any. */
  places: number[] | null
  /** Null if there is only one stream. */
  stream_ids: number[] | null
  /** One for all, or one for each. */
  started: boolean | boolean[]
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
  /** False if nothing was recorded, because jobs have left the leases: the ends must be sent again to be checked. */
  recorded?: boolean
  /** Ended jobs that were checked, and whose lease was no longer held. */
  lost?: string[] | null
  /** Dependents that the ends have made ready. */
  became_ready?: number | null
  /** Jobs wait that are bigger than the default: a claim that is not by size passes over them. */
  big_waiting: boolean
  /** Something is paused: a claim may have passed over it. */
  paused: boolean
}

export type ExchangeRow = { news: ExchangeNews }

/** Puts the claimed jobs together, the first to start first. */
export const readExchange = ([row]: readonly ExchangeRow[]): {
  news: ExchangeNews
  claimed: ClaimedJob[]
} => {
  if (!row) throw new Error('An exchange answers one row')
  const { news } = row
  const ids = news.jobs?.ids ?? []
  const toJob = jobMaker(news)
  if (!news.job_ids) return { news, claimed: ids.map((id, n) => toJob(id, n, n)) }
  const numbers = new Map(ids.map((id, number) => [id, number]))
  const claimed = inOrder(news.job_ids, news.places).flatMap(({ id, position }) => {
    const number = numbers.get(id)
    return number === undefined ? [] : toJob(id, number, position)
  })
  return { news, claimed }
}

const inOrder = (ids: readonly string[], places: readonly number[] | null) => {
  const listed = ids.map((id, position) => ({ id, position }))
  if (places) listed.sort((a, b) => (places[a.position] ?? 0) - (places[b.position] ?? 0))
  return listed
}

/** Makes a job from its number among the jobs and its position in the lists. */
const jobMaker = (news: ExchangeNews) => {
  const { jobs, started } = news
  const streams = new Map(Object.entries(news.streams ?? {}))
  const [only = ''] = streams.keys()
  return (job_id: string, number: number, position: number): ClaimedJob => {
    const stream_id = news.stream_ids ? String(news.stream_ids[position]) : only
    const [org_id = '', type = '', name = ''] = streams.get(stream_id) ?? []
    return {
      job_id,
      org_id,
      stream_id,
      type,
      name,
      payload: jobs?.payloads?.[number] ?? {},
      timeout_seconds: jobs?.timeouts?.[number] ?? null,
      token: news.token ?? '',
      attempt: news.attempts?.[position] ?? 1,
      started: typeof started === 'boolean' ? started : started[position] === true,
      cpu_units: news.cpu_units?.[position] ?? DEFAULT_RESOURCES.cpu_units,
      memory_mb: news.memory_mb?.[position] ?? DEFAULT_RESOURCES.memory_mb,
      checkpoint: news.checkpoints?.[job_id] ?? null,
    }
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
  /**
   * How many jobs the leases of the ended ones were made with, if as far as the worker knows none has left them but by
   * completing. Null if some has, or if it is not sure: then each is looked for.
   */
  leaseJobs: number | null
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
    from jobs
    where (org_id, id) in (select org_id, id from unnest($1::uuid[], $2::uuid[]) as j (org_id, id))`,
  values: [jobs.map(({ org_id }) => org_id), jobs.map(({ job_id }) => job_id)],
})
