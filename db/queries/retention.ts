import type { Query } from '../query.ts'
import { uuidV7Floor } from '../rules/uuid-v7.ts'

/** What is older than so many days, and how much of it at a time. */
type Expiry = { term: string; days: number; limit: number }

/**
 * Deletes the oldest finished jobs with everything that belongs to them. Ids are UUIDv7, so the oldest stand at the
 * left of the primary key. A job that others still wait for stays.
 */
export const deleteExpiredJobs = (expiry: Expiry): Query<{ deleted: number }> => ({
  name: 'delete-expired-jobs',
  text: `
    with expired as materialized (
      select f.org_id, f.job_id
      from smartqueue.orgs o
      cross join lateral (
        select org_id, job_id
        from smartqueue.finished_jobs
        where org_id = o.id
          and job_id < $4::uuid
          and finished_at < now() - $2::double precision * interval '1 day'
          and not exists (
            select
            from smartqueue.job_dependencies d
            join smartqueue.blocked_jobs b on b.job_id = d.child_id
            where d.parent_id = finished_jobs.job_id
          )
        order by job_id
        limit $3::int
        -- One that is being retried has no row here any more, and keeps its job.
        for update skip locked
      ) f
      where (select smartqueue.in_term($1::bigint))
      limit $3::int
    ),
    finished as (
      delete from smartqueue.finished_jobs f
      using expired e
      where f.org_id = e.org_id
        and f.job_id = e.job_id
    ),
    tried as (
      delete from smartqueue.attempts a
      using expired e
      where a.org_id = e.org_id
        and a.job_id = e.job_id
    ),
    -- Logs, progress and dependencies go with the job.
    job as (
      delete from smartqueue.jobs j
      using expired e
      where j.org_id = e.org_id
        and j.id = e.job_id
    )
    select count(*)::int as deleted
    from expired`,
  values: [expiry.term, expiry.days, expiry.limit, idsBefore(expiry.days)],
})

/** The oldest events, a bounded number of statements' worth at a time. */
export const deleteExpiredEvents = (expiry: Expiry): Query<{ deleted: number }> => ({
  name: 'delete-expired-events',
  text: `
    with deleted as (
      delete from smartqueue.job_event_groups
      where id = any (
        array(
          select id
          from smartqueue.job_event_groups
          where at < now() - $2::double precision * interval '1 day'
            and (select smartqueue.in_term($1::bigint))
          limit $3::int
        )
      )
      returning id, xid
    ),
    -- Whoever follows a stream from before it is told that there is a gap. Rows that came with a dump are in no stream.
    floor as (
      update smartqueue.stream_floor f
      set xid = d.xid
      from (
        select xid
        from deleted
        where xid is not null
          and id > (select foreign_id from smartqueue.callback_cursor)
        order by xid desc
        limit 1
      ) d
      where d.xid > f.xid
    )
    select count(*)::int as deleted
    from deleted`,
  values: [expiry.term, expiry.days, expiry.limit],
})

/** The oldest deliveries of webhooks, a bounded number at a time. */
export const deleteExpiredDeliveries = (expiry: Expiry): Query<{ deleted: number }> => ({
  name: 'delete-expired-deliveries',
  text: `
    with expired as materialized (
      select org_id, id
      from smartqueue.webhook_deliveries
      where received_at < now() - $2::double precision * interval '1 day'
        and (select smartqueue.in_term($1::bigint))
      order by received_at
      limit $3::int
    ),
    deleted as (
      delete from smartqueue.webhook_deliveries d
      using expired e
      where d.org_id = e.org_id
        and d.id = e.id
      returning d.id
    )
    select count(*)::int as deleted
    from deleted`,
  values: [expiry.term, expiry.days, expiry.limit],
})

/** The oldest executions, by age and beyond a number of rows. Ids are consecutive, so that nothing need be counted. */
export const deleteExpiredExecutions = (expiry: Expiry & { keep: number }): Query<{ deleted: number }> => ({
  name: 'delete-expired-executions',
  text: `
    with oldest as materialized (
      select xid, id, at
      from smartqueue.executions
      where (select smartqueue.in_term($1::bigint))
      order by xid, id
      limit $4::int
    ),
    deleted as (
      delete from smartqueue.executions e
      using oldest o
      where e.xid = o.xid
        and e.id = o.id
        and (
          o.at < now() - $2::double precision * interval '1 day'
          or o.id <= (select id from smartqueue.executions order by xid desc, id desc limit 1) - $3::bigint
        )
      returning e.id
    )
    select count(*)::int as deleted
    from deleted`,
  values: [expiry.term, expiry.days, expiry.keep, expiry.limit],
})

/** The oldest ticks of schedules, a bounded number at a time; of each schedule the newest stays, however old it is. */
export const deleteExpiredTicks = (expiry: Expiry): Query<{ deleted: number }> => ({
  name: 'delete-expired-ticks',
  text: `
    with deleted as (
      delete from smartqueue.schedule_ticks
      where ctid = any (
        array(
          select ctid
          from smartqueue.schedule_ticks t
          where fired_at < now() - $2::double precision * interval '1 day'
            and exists (select from smartqueue.schedule_ticks where schedule_id = t.schedule_id and tick_at > t.tick_at)
            and (select smartqueue.in_term($1::bigint))
          order by fired_at
          limit $3::int
        )
      )
      returning 1
    )
    select count(*)::int as deleted
    from deleted`,
  values: [expiry.term, expiry.days, expiry.limit],
})

/** The oldest rollups, a bounded number of each kind at a time. Minutes are kept for the last 24 hours, with some to spare. */
export const deleteExpiredRollups = (expiry: Expiry): Query<{ deleted: number }> => ({
  name: 'delete-expired-rollups',
  text: `
    -- Without a row, and so without anything older, if the term is over.
    with cutoff as materialized (
      select now() - interval '26 hours' as minute, now() - $2::double precision * interval '1 day' as hour
      where smartqueue.in_term($1::bigint)
    ),
    jobs as (
      delete from smartqueue.job_rollups
      where ctid = any (
        array(
          select ctid
          from smartqueue.job_rollups
          where span = 60 and at < (select minute from cutoff) or span = 3600 and at < (select hour from cutoff)
          limit $3::int
        )
      )
      returning 1
    ),
    depths as (
      delete from smartqueue.depth_rollups
      where ctid = any (
        array(
          select ctid
          from smartqueue.depth_rollups
          where span = 60 and at < (select minute from cutoff) or span = 3600 and at < (select hour from cutoff)
          limit $3::int
        )
      )
      returning 1
    ),
    predictions as (
      delete from smartqueue.prediction_rollups
      where ctid = any (
        array(
          select ctid
          from smartqueue.prediction_rollups
          where at < (select hour from cutoff)
          limit $3::int
        )
      )
      returning 1
    ),
    gains as (
      delete from smartqueue.scheduling_gains
      where ctid = any (
        array(
          select ctid
          from smartqueue.scheduling_gains
          where at < (select hour from cutoff)
          limit $3::int
        )
      )
      returning 1
    ),
    slots as (
      delete from smartqueue.slot_changes
      where ctid = any (
        array(
          select ctid
          from smartqueue.slot_changes
          where at < (select hour from cutoff)
            -- The newest says how many there are.
            and at < (select max(at) from smartqueue.slot_changes)
          limit $3::int
        )
      )
      returning 1
    )
    select greatest(
      (select count(*) from jobs), (select count(*) from depths), (select count(*) from predictions),
      (select count(*) from gains), (select count(*) from slots)
    )::int as deleted`,
  values: [expiry.term, expiry.days, expiry.limit],
})

/**
 * Looks at the next series and forgets those without jobs, which have not run for the retention time. `forgotten` is
 * null if submissions kept `forget_series` from locking.
 */
export const forgetIdleSeries = (sweep: {
  term: string
  days: number
  afterId: string
  limit: number
}): Query<{ looked_at: number; last_id: string | null; idle: number; forgotten: number | null }> => ({
  name: 'forget-idle-series',
  text: `
    with looked_at as materialized (
      select id
      from smartqueue.series
      where id > $3::bigint
        and (select smartqueue.in_term($1::bigint))
      order by id
      limit $4::int
    ),
    idle as materialized (
      select id
      from looked_at a
      where not exists (select from smartqueue.jobs where series_id = a.id)
        and not exists (
          select
          from smartqueue.series_memories
          where series_id = a.id
            and updated_at > now() - $2::double precision * interval '1 day'
        )
    )
    select
      (select count(*)::int from looked_at) as looked_at, (select max(id) from looked_at) as last_id,
      (select count(*)::int from idle) as idle,
      case
        when exists (select from idle) then smartqueue.forget_series(array(select id from idle))
        else 0
      end as forgotten`,
  values: [sweep.term, sweep.days, sweep.afterId, sweep.limit],
})

/** Rows that were only good for a while: counts of limits, idempotency keys, invitations, refresh tokens. */
export const deleteStale = (term: string): Query<never> => ({
  name: 'delete-stale',
  text: `
    -- Without a row, and so without anything older, if the term is over.
    with present as materialized (
      select now() as at
      where smartqueue.in_term($1::bigint)
    ),
    rate_limit as (
      delete from smartqueue.rate_limits
      where last_hit < (select at from present) - interval '1 hour'
    ),
    attempt as (
      delete from smartqueue.sign_in_attempts
      where last_attempt < (select at from present) - interval '1 day'
    ),
    key as (
      delete from smartqueue.idempotency_keys
      where expires_at < (select at from present) - interval '1 hour'
    ),
    invitation as (
      delete from smartqueue.invitations
      where expires_at < (select at from present) - interval '30 days'
    ),
    token as (
      delete from smartqueue.refresh_tokens
      where expires_at < (select at from present)
    )
    delete from smartqueue.refresh_families
    where expires_at < (select at from present)`,
  values: [term],
})

/** A day of slack covers clocks that differ. */
const idsBefore = (days: number): string => uuidV7Floor(Date.now() - (days - 1) * 86_400_000)
