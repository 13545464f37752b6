import type { Query } from '../query.ts'
import type { Quota } from '../rules/quotas.ts'
import { audit } from './audit.ts'

/** Numbers beyond 2^53 are texts. `used` is null of what has no limit, and so is not counted. */
export type QuotaRow = { quota: Quota; allowed: string | null; used: string | null }

const OF_ORG = `
      select q.submissions_per_minute, q.queued_jobs, q.running_jobs, q.payload_bytes_per_day
      from quotas q
      where q.org_id = $1::uuid
        or q.org_id is null
      order by q.org_id nulls last
      limit 1`

const NOW = 'floor(extract(epoch from clock_timestamp()))::bigint'

const MINUTE_USED = `
      select coalesce(sum(ring_used(minute_slots, minute_at, ${NOW})), 0)
      from quota_states
      where org_id = $1::uuid
    `

const DAY_USED = `
      select coalesce(sum(ring_used(day_slots, day_at, ${NOW} / 3600)), 0)
      from quota_states
      where org_id = $1::uuid
    `

export const getQuotas = (orgId: string): Query<QuotaRow> => ({
  name: 'get-quotas',
  text: `
    with mine as materialized (${OF_ORG}
    )
    select 'submissions_per_minute' as quota, submissions_per_minute as allowed,
      case when submissions_per_minute is not null then (${MINUTE_USED}) end as used
    from mine
    union all
    select 'queued_jobs', queued_jobs,
      (
        (select count(*) from ready_jobs where org_id = $1::uuid)
        + (select count(*) from waiting_jobs where org_id = $1::uuid)
        + (select count(*) from blocked_jobs where org_id = $1::uuid)
      )
    from mine
    union all
    select 'running_jobs', running_jobs, (select count(*) from held_jobs where org_id = $1::uuid)
    from mine
    union all
    select 'payload_bytes_per_day', payload_bytes_per_day,
      case when payload_bytes_per_day is not null then (${DAY_USED}) end
    from mine`,
  values: [orgId],
})

/** Only what is given changes; the rest stays, or becomes the default of this moment. */
export const setQuotas = (
  orgId: string,
  changes: { [Name in Quota]?: number | null | undefined },
): Query<{ org_id: string }> => ({
  name: 'set-quotas',
  text: `
    with mine as materialized (${OF_ORG}
    ),
    changed as (
      insert into quotas as q (org_id, submissions_per_minute, queued_jobs, running_jobs, payload_bytes_per_day)
      select
        o.id,
        case when c ? 'submissions_per_minute' then (c ->> 'submissions_per_minute')::bigint else mine.submissions_per_minute end,
        case when c ? 'queued_jobs' then (c ->> 'queued_jobs')::bigint else mine.queued_jobs end,
        case when c ? 'running_jobs' then (c ->> 'running_jobs')::bigint else mine.running_jobs end,
        case when c ? 'payload_bytes_per_day' then (c ->> 'payload_bytes_per_day')::bigint else mine.payload_bytes_per_day end
      from orgs o, mine, (select $2::jsonb as c) change
      where o.id = $1::uuid
      on conflict on constraint quotas_once do update
      set
        submissions_per_minute = excluded.submissions_per_minute,
        queued_jobs = excluded.queued_jobs,
        running_jobs = excluded.running_jobs,
        payload_bytes_per_day = excluded.payload_bytes_per_day
      returning q.org_id
    ),
    audit as (${audit('org.quotas_changed', `$2::jsonb`, 'changed')}
    )
    select org_id
    from changed`,
  values: [orgId, JSON.stringify(changes)],
})
