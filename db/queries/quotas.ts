import type { Query } from '../query.ts'
import type { Quota } from '../rules/quotas.ts'

/** Bigints are texts. */
export type QuotaRow = { quota: Quota; allowed: string | null; used: string }

export const getQuotas = (orgId: string): Query<QuotaRow> => ({
  name: 'get-quotas',
  text: `
    select u.quota, u.allowed, u.used
    from smartqueue.quotas_of($1::uuid) q
    cross join smartqueue.quota_states s
    cross join (select floor(extract(epoch from clock_timestamp()))::bigint as second) clock
    cross join lateral (
      values
        (
          'submissions_per_minute', q.submissions_per_minute,
          smartqueue.ring_used(s.minute_slots, s.minute_at, s.second_jobs, clock.second)
        ),
        ('queued_jobs', q.queued_jobs, smartqueue.count_unfinished($1::uuid)),
        ('running_jobs', q.running_jobs, (select count(*) from smartqueue.held_jobs where org_id = $1::uuid)),
        (
          'payload_bytes_per_day', q.payload_bytes_per_day,
          smartqueue.ring_used(s.day_slots, s.day_at, s.hour_bytes, clock.second / 3600)
        )
    ) as u (quota, allowed, used)
    where s.org_id = $1::uuid`,
  values: [orgId],
})

export const setQuotas = (
  orgId: string,
  changes: { [Name in Quota]?: number | null | undefined },
): Query<{ org_id: string }> => ({
  name: 'set-quotas',
  text: `
    with mine as materialized (
      select *
      from smartqueue.quotas_of($1::uuid)
    ),
    changed as (
      insert into smartqueue.quotas as q (
        org_id, submissions_per_minute, queued_jobs, running_jobs, payload_bytes_per_day
      )
      select
        o.id,
        case when c ? 'submissions_per_minute' then (c ->> 'submissions_per_minute')::bigint else mine.submissions_per_minute end,
        case when c ? 'queued_jobs' then (c ->> 'queued_jobs')::bigint else mine.queued_jobs end,
        case when c ? 'running_jobs' then (c ->> 'running_jobs')::bigint else mine.running_jobs end,
        case when c ? 'payload_bytes_per_day' then (c ->> 'payload_bytes_per_day')::bigint else mine.payload_bytes_per_day end
      from smartqueue.orgs o, mine, (select $2::jsonb as c) change
      where o.id = $1::uuid
      on conflict on constraint quotas_once do update
      set
        submissions_per_minute = excluded.submissions_per_minute,
        queued_jobs = excluded.queued_jobs,
        running_jobs = excluded.running_jobs,
        payload_bytes_per_day = excluded.payload_bytes_per_day
      returning q.org_id
    ),
    -- It may not have been kept up while there was no limit.
    recounted as (
      update smartqueue.quota_states
      set queued_bound = null
      where org_id in (select org_id from changed)
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, 'org.quotas_changed', $2::jsonb
      from changed
    )
    select org_id
    from changed`,
  values: [orgId, JSON.stringify(changes)],
})
