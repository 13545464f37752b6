import { NOTIFY_READY } from '../channels.ts'
import type { Query } from '../query.ts'
import type { JobFailure } from './jobs.ts'

/** Names a held job. Every write of a worker carries the token: a former holder matches no row. */
export type LeaseKey = { job_id: string; token: string }

export type ClaimedJob = LeaseKey & {
  org_id: string
  type: string
  name: string
  payload: Record<string, unknown>
  attempt: number
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
}

/** Takes the first jobs in rank order that nobody else is taking, and leases them, in one statement. */
export const claimJobs = (claim: {
  workerId: string
  types: string[]
  limit: number
  leaseSeconds: number
}): Query<ClaimedJob> => ({
  name: 'claim-jobs',
  // Materialized: the planner may otherwise re-run the limited select and claim too many.
  text: `
    with candidate as materialized (
      select job_id
      from ready_jobs
      where type = any ($2::text[])
      order by rank, job_id
      limit $3::int
      for update skip locked
    ),
    taken as (
      delete from ready_jobs r
      using candidate c
      where r.job_id = c.job_id
      returning r.job_id, r.org_id, r.attempts
    ),
    leased as (
      insert into leases (job_id, org_id, worker_id, token, attempt, expires_at)
      select job_id, org_id, $1::text, gen_random_uuid(), attempts + 1, now() + $4::int * interval '1 second'
      from taken
      returning job_id, org_id, token, attempt
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt)
      select org_id, job_id, 'running', attempt
      from leased
    )
    select
      l.job_id, l.token, l.org_id, j.type, j.name, j.payload, l.attempt, j.timeout_seconds,
      j.max_attempts, j.initial_delay_seconds, j.backoff_multiplier
    from leased l
    join jobs j on j.id = l.job_id
    order by j.rank, j.id`,
  values: [claim.workerId, claim.types, claim.limit, claim.leaseSeconds],
})

/** `$1` is `LeaseKey[]` as JSON. Statements on many leases lock them in one order, so that no two deadlock. */
const LOCK_HELD = `
      from leases l
      join jsonb_to_recordset($1::jsonb) as h (job_id uuid, token uuid)
        on l.job_id = h.job_id and l.token = h.token
      order by l.job_id
      for update of l`

const keysJson = (held: LeaseKey[]): string =>
  JSON.stringify(held.map(({ job_id, token }) => ({ job_id, token })))

/** Answers the leases that are still held; one that is missing has been lost. */
export const renewLeases = (held: LeaseKey[], leaseSeconds: number): Query<{ token: string }> => ({
  name: 'renew-leases',
  text: `
    with held as materialized (
      select l.job_id${LOCK_HELD}
    )
    update leases l
    set expires_at = now() + $2::int * interval '1 second'
    from held
    where l.job_id = held.job_id
    returning l.token`,
  values: [keysJson(held), leaseSeconds],
})

/** How an attempt ended. `retrying` waits `delay_ms` before it is ready again. */
export type EndedAttempt = LeaseKey &
  (
    | { state: 'completed'; result: unknown }
    | { state: 'failed'; error: JobFailure }
    | { state: 'retrying'; error: JobFailure; delay_ms: number }
  )

/** Takes `EndedAttempt[]` as JSON, and ends one or many. Answers those that were recorded; the others had lost their lease. */
export const endAttempts = (endedJson: string): Query<{ job_id: string }> => ({
  name: 'end-attempts',
  text: `
    with outcome as (
      select job_id, token, state, result, error, delay_ms
      from jsonb_to_recordset($1::jsonb) as o (
        job_id uuid, token uuid, state text, result jsonb, error jsonb, delay_ms double precision
      )
    ),
    held as materialized (
      select l.job_id, l.org_id, l.worker_id, l.attempt, l.started_at, o.state, o.result, o.error, o.delay_ms
      from leases l
      join outcome o on o.job_id = l.job_id and o.token = l.token
      order by l.job_id
      for update of l
    ),
    ended as (
      delete from leases l
      using held
      where l.job_id = held.job_id
    ),
    attempt as (
      insert into attempts (job_id, org_id, attempt, outcome, error, worker_id, started_at)
      select
        job_id, org_id, attempt, case state when 'completed' then 'completed' else 'failed' end, error, worker_id,
        started_at
      from held
    ),
    finished as (
      insert into finished_jobs (job_id, org_id, state, attempts, result, error, worker_id, started_at)
      select job_id, org_id, state, attempt, result, error, worker_id, started_at
      from held
      where state in ('completed', 'failed')
    ),
    retrying as (
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at, error)
      select job_id, org_id, 'retrying', attempt, now() + delay_ms * interval '1 millisecond', error
      from held
      where state = 'retrying'
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt, reason)
      select org_id, job_id, state, attempt, error ->> 'code'
      from held
    )
    select job_id
    from held`,
  values: [endedJson],
})

/** Gives jobs back that a stopping worker did not finish. They are ready again, and the try does not count. */
export const releaseJobs = (held: LeaseKey[], reason: string): Query<{ job_id: string }> => ({
  name: 'release-jobs',
  text: `
    with held as materialized (
      select l.job_id, l.org_id, l.attempt${LOCK_HELD}
    ),
    released as (
      delete from leases l
      using held
      where l.job_id = held.job_id
    ),
    ready as (
      insert into ready_jobs (job_id, org_id, type, rank, attempts)
      select held.job_id, held.org_id, j.type, j.rank, held.attempt - 1
      from held
      join jobs j on j.id = held.job_id
      returning job_id, org_id, type, attempts
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt, reason)
      select org_id, job_id, 'ready', attempts, $2::text
      from ready
    ),${NOTIFY_READY}
    select job_id, (select count(*) from notified) as notified
    from ready`,
  values: [keysJson(held), reason],
})
