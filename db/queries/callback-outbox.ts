/**
 * `job_event_groups` is an outbox: whatever ends a job writes to it, and the leader makes a callback job for each URL
 * that subscribed. Exactly one, because the cursor moves in the transaction that submits those jobs.
 */
import type { Query } from '../query.ts'
import type { CallbackEvent } from '../rules/callbacks.ts'
import type { EventPosition } from './event-cursors.ts'
import type { JobRow } from './jobs.ts'

/** A job that ended, and the URLs to notify of it. Times are as Postgres writes them within JSON. */
export type EndedJob = Pick<JobRow, 'org_id' | 'name' | 'type' | 'tags' | 'triggered_by' | 'traceparent'> &
  Pick<JobRow, 'fairness_key' | 'attempts' | 'created_at' | 'started_at' | 'result' | 'error'> & {
    job_id: string
    event: CallbackEvent
    reason: string | null
    at: string
    urls: string[]
    result_omitted: boolean
  }

export type OutboxPage = {
  events: EndedJob[]
  /** Everything before it has been looked at. */
  next: EventPosition
  /** There is more to look at. */
  more: boolean
}

/** A larger result is not sent along: the receiver may fetch it. */
const MAX_RESULT_BYTES = 64 * 1024

/**
 * The next events with subscribers, up to the oldest running transaction: beyond it, a later commit could come before
 * one that was read. A page has at most so many rows and so many of their jobs (`events`), and ends with the job whose
 * URLs fill it (`callbacks`).
 *
 * For organisations without subscribers only the row is read. Whether there are any is looked up in index order by
 * limited subqueries, and each job by its key: otherwise the planner reads whole tables. An endpoint is not told of
 * events before its creation. If a job was retried since, this end is among its attempts.
 *
 * Measured with 200,000 jobs and 110,000 rows of events: 0.4 ms if nothing is new, 1.5 ms for a thousand rows without
 * subscribers, 8 ms for the 84 jobs of a page with three URLs each.
 */
export const findCallbacks = (
  from: EventPosition,
  limits: { events: number; callbacks: number },
): Query<OutboxPage> => ({
  name: 'find-callbacks',
  text: `
    with horizon as materialized (
      select pg_snapshot_xmin(pg_current_snapshot()) as xid
    ),
    span as materialized (
      select
        xid, id, org_id, at, job_ids, states, attempts, reasons, ats,
        case when xid = $1::xid8 and id = $2::bigint then $3::int else 0 end as skipped
      from smartqueue.job_event_groups
      where (xid, id) >= ($1::xid8, $2::bigint)
        and xid < (select xid from horizon)
        and id > (select foreign_id from smartqueue.event_cursors where reader = 'callbacks')
        and (
          (select true from smartqueue.callback_endpoints where disabled_at is null and events <> '{}' limit 1)
          or (select true from smartqueue.jobs where callback_url is not null order by org_id, id limit 1)
        )
      order by xid, id
      limit $4::int
    ),
    org as materialized (
      select
        org_id,
        (
          select true
          from smartqueue.callback_endpoints e
          where e.org_id = s.org_id
            and disabled_at is null
            and events <> '{}'
          limit 1
        ) as of_all,
        (
          select true
          from smartqueue.jobs j
          where j.org_id = s.org_id
            and callback_url is not null
          order by id
          limit 1
        ) as of_some
      from (select distinct org_id from span) s
    ),
    asked as materialized (
      select
        s.*, o.of_all,
        -- The last of its jobs that the page has room for.
        ($4::int + cardinality(job_ids) - sum(cardinality(job_ids) - skipped) over (order by xid, id))::int as last
      from span s
      join org o using (org_id)
      where states && '{completed,failed,cancelled}'
        and (o.of_all or o.of_some)
    ),
    looked_at as materialized (
      select a.xid, a.id, e.n as position, a.org_id, a.of_all, e.job_id, e.state, e.attempt, e.reason, e.at
      from asked a
      cross join lateral smartqueue.unpack_events(
        a.job_ids, a.states, a.attempts, a.reasons, a.ats, a.at, a.skipped, a.last
      ) e
      where a.last > a.skipped
      -- In this order, so that those below need not look at all of them to find the first.
      order by a.xid, a.id, e.n
    ),
    wanted as materialized (
      select l.*, j.name, j.type, j.tags, j.triggered_by, j.traceparent, j.fairness_key, j.created_at, u.urls
      from looked_at l
      cross join lateral (
        select name, type, tags, triggered_by, traceparent, fairness_key, created_at, callback_url
        from smartqueue.jobs
        where org_id = l.org_id
          and id = l.job_id
          and type <> 'callback'
          and (l.of_all or callback_url is not null)
        offset 0
      ) j
      cross join lateral (
        select array_agg(url order by url) as urls
        from (
          select url
          from smartqueue.callback_endpoints
          where l.of_all
            and org_id = l.org_id
            and disabled_at is null
            and events <> '{}'
            and 'job.' || l.state = any (events)
            and created_at <= l.at
          union
          select j.callback_url
          where j.callback_url is not null
            and not exists (
              select
              from smartqueue.callback_endpoints
              where org_id = l.org_id
                and url = j.callback_url
                and disabled_at is not null
            )
        ) subscribed
      ) u
      where l.state in ('completed', 'failed', 'cancelled')
        and u.urls is not null
      order by l.xid, l.id, l.position
      limit $5::int
    ),
    page as materialized (
      select w.*
      from (
        select *, sum(cardinality(urls)) over (order by xid, id, position) - cardinality(urls) as before
        from wanted
      ) w
      where before < $5::int
    ),
    told as materialized (
      select
        p.xid, p.id, p.position, p.org_id, p.job_id, 'job.' || p.state as event, p.attempt as attempts, p.reason, p.at,
        p.urls, p.name, p.type, p.tags, p.triggered_by, p.traceparent, p.fairness_key, p.created_at,
        coalesce(f.started_at, a.started_at) as started_at,
        case when f.bytes <= $6::int then f.result end as result,
        coalesce(f.bytes > $6::int, false) as result_omitted,
        coalesce(f.error, a.error) as error
      from page p
      left join lateral (
        select started_at, result, octet_length(result::text) as bytes, error
        from smartqueue.finished_jobs
        where org_id = p.org_id
          and job_id = p.job_id
          and finished_at = p.at
        offset 0
      ) f on true
      left join lateral (
        select started_at, error
        from smartqueue.attempts
        where org_id = p.org_id
          and job_id = p.job_id
          and finished_at = p.at
        order by id desc
        limit 1
      ) a on true
    ),
    -- As far as the page has come: to a limit of its own, or to everything that has committed.
    stop as materialized (
      (
        select 1 as place, xid, id, position, true as more
        from page
        where (select count(*) from wanted) = $5::int
          or (select count(*) from page) < (select count(*) from wanted)
        order by xid desc, id desc, position desc
        limit 1
      )
      union all
      (
        select 2, xid, id, position, true
        from looked_at
        where (select count(*) from looked_at) = $4::int
        order by xid desc, id desc, position desc
        limit 1
      )
      union all
      (
        select 3, xid, id, cardinality(job_ids), true
        from span
        where (select count(*) from span) = $4::int
        order by xid desc, id desc
        limit 1
      )
      union all
      select 4, xid, 0, 0, false
      from horizon
      order by place
      limit 1
    )
    select
      jsonb_build_object('xid', xid::text, 'id', id::text, 'position', position) as next, more,
      (select coalesce(jsonb_agg(to_jsonb(told) order by xid, id, position), '[]') from told) as events
    from stop`,
  values: [from.xid, from.id, from.position, limits.events, limits.callbacks, MAX_RESULT_BYTES],
})
