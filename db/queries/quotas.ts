import type { Query } from '../query.ts'
import type { Quota } from '../rules/quotas.ts'

/** Bigints are texts. Each row has the weight. */
export type QuotaRow = { quota: Quota; allowed: string | null; used: string; weight: number }

export const getQuotas = (orgId: string): Query<QuotaRow> => ({
  name: 'get-quotas',
  text: `
    select u.quota, u.allowed, u.used, q.weight
    from smartqueue.quotas_of($1::uuid) q
    cross join smartqueue.quota_states s
    cross join (select floor(extract(epoch from clock_timestamp()))::bigint as second) clock
    cross join lateral (
      values
        (
          'submissions_per_minute', q.submissions_per_minute,
          smartqueue.ring_used(smartqueue.ring_moved(s.minute_slots, s.minute_at, s.second_jobs, clock.second))
        ),
        ('queued_jobs', q.queued_jobs, smartqueue.count_unfinished($1::uuid)),
        ('running_jobs', q.running_jobs, (select count(*) from smartqueue.held_jobs where org_id = $1::uuid)),
        (
          'payload_bytes_per_day', q.payload_bytes_per_day,
          smartqueue.ring_used(smartqueue.ring_moved(s.day_slots, s.day_at, s.hour_bytes, clock.second / 3600))
        )
    ) as u (quota, allowed, used)
    where s.org_id = $1::uuid`,
  values: [orgId],
})

/**
 * Changes some quotas of an organisation or, without one, of all organisations that have none of their own. Returns
 * no row if there is no such organisation.
 */
export const setQuotas = (
  orgId: string | null,
  changes: { [Name in Quota]?: number | null | undefined } & { weight?: number | undefined },
): Query<Record<Quota, string | null> & { weight: number }> => ({
  name: 'set-quotas',
  text: `
    -- The bound may not have been kept up while there was no limit.
    with recounted as (
      update smartqueue.quota_states
      set queued_bound = null
      where org_id = any (
        array(
          select s.org_id
          from smartqueue.quota_states s
          where $2::jsonb ? 'queued_jobs'
            and ($1::uuid is null or s.org_id = $1::uuid)
          order by s.org_id
          for update
        )
      )
    )
    insert into smartqueue.quotas as q (
      org_id, submissions_per_minute, queued_jobs, running_jobs, payload_bytes_per_day, weight
    )
    select $1::uuid, n.submissions_per_minute, n.queued_jobs, n.running_jobs, n.payload_bytes_per_day, n.weight
    from smartqueue.quotas_of($1::uuid) as present
    cross join jsonb_populate_record(present, $2::jsonb) as n
    where $1::uuid is null or exists (select from smartqueue.orgs o where o.id = $1::uuid)
    on conflict on constraint quotas_once do update
    set
      submissions_per_minute = excluded.submissions_per_minute,
      queued_jobs = excluded.queued_jobs,
      running_jobs = excluded.running_jobs,
      payload_bytes_per_day = excluded.payload_bytes_per_day,
      weight = excluded.weight
    returning
      q.submissions_per_minute, q.queued_jobs, q.running_jobs, q.payload_bytes_per_day, q.weight,
      case when q.org_id is not null then smartqueue.audit(q.org_id, 'org.quotas_changed', $2::jsonb) end as audited`,
  values: [orgId, JSON.stringify(changes)],
})
