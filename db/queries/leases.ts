import type { Query } from '../query.ts'
import type { LeaseKey } from './exchange.ts'

/**
 * The leases of `$1` and `$2` that are still held, locked in the order given, which is the same for all statements on
 * many leases. Lateral: each is one probe of the primary key, whatever the planner believes about the table's size.
 */
const LOCK_HELD = `
      from unnest($1::uuid[], $2::bigint[]) as h (job_id, token)
      cross join lateral (
        select job_id, org_id, token, attempt, started_at
        from leases
        where job_id = h.job_id
          and token = h.token
        for no key update
      ) l`

/** In the order in which every statement locks leases. */
export const inLockOrder = <Key extends { job_id: string }>(keys: readonly Key[]): Key[] =>
  [...keys].sort((a, b) => (a.job_id < b.job_id ? -1 : 1))

const keyValues = (held: readonly LeaseKey[]): [string[], string[]] => {
  const ordered = inLockOrder(held)
  return [ordered.map(({ job_id }) => job_id), ordered.map(({ token }) => token)]
}

/** Answers the leases that are still held; one that is missing has been lost. */
export const renewLeases = (
  held: readonly LeaseKey[],
  leaseSeconds: number,
): Query<{ job_id: string; token: string }> => ({
  name: 'renew-leases',
  text: `
    with held as materialized (
      select l.job_id${LOCK_HELD}
    )
    update leases
    set expires_at = now() + $3::int * interval '1 second'
    where job_id = any (array(select job_id from held))
    returning job_id, token`,
  values: [...keyValues(held), leaseSeconds],
})

/**
 * Gives jobs back that the worker did not finish, or did not even start. They are ready again, at the end of their
 * lane, and the try does not count.
 */
export const releaseJobs = (
  held: readonly LeaseKey[],
  reason: string,
): Query<{ job_id: string; type: string }> => ({
  name: 'release-jobs',
  text: `
    with held as materialized (
      select l.job_id, l.org_id, l.attempt, l.started_at${LOCK_HELD}
    ),
    released as (
      delete from leases
      where job_id = any (array(select job_id from held))
    ),
    ready as (
      insert into ready_jobs (job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
      select
        q.job_id, q.org_id, q.stream_id, q.type, q.lane, h.attempt - 1, q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by
      from held h
      join queue_entries q on q.org_id = h.org_id and q.job_id = h.job_id
      returning job_id, type
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt, reason)
      select org_id, job_id, 'ready', attempt - 1, $3::text
      from held
      where started_at is not null
    )
    select job_id, type
    from ready`,
  values: [...keyValues(held), reason],
})
