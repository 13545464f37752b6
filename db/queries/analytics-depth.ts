import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE } from '../rules/lanes.ts'
import { SILENT_SECONDS } from './queue-facts.ts'
import { drawOf, KEEP_GAUGES, stepOf } from './queue-gauges.ts'

const STATUSES = ['pending', 'blocked', 'ready', 'running', 'retrying']
const SUMS = `${STATUSES.join(', ')}, predicted_seconds`

/**
 * Looks at the queues of all organisations at once, and adds what it sees to their minute and hour. A queue that has become
 * empty is seen as that until the hour is over; one that was empty when the minute or hour began has been so as often as it
 * would have been looked at. It also keeps when the slots of the live workers change, and what metrics tell of the queue.
 *
 * A million ready jobs are counted in half a second; whoever calls it must not do so all the time.
 */
export const sampleDepths = (term: string, everySeconds: number): Query<{ orgs: number }> => ({
  name: 'sample-depths',
  text: `
    with part as materialized (
      select
        org_id, state::text as status, count(*) as jobs, 0::double precision as predicted_ms,
        null::timestamptz as oldest_ready_at,
        ${drawOf('job_id', `case state when 'pending' then ${stepOf('pending')} else ${stepOf('retrying')} end`)} as drawn
      from smartqueue.waiting_jobs
      group by org_id, state
      union all
      select org_id, 'blocked', count(*), 0, null, ${drawOf('job_id', stepOf('blocked'))}
      from smartqueue.blocked_jobs
      group by org_id
      union all
      select
        org_id, 'ready', count(*), sum(predicted_ms), min(ready_at) filter (where lane < ${FIRST_PARKED_LANE}),
        ${drawOf('job_id', stepOf('ready'))}
      from smartqueue.ready_jobs
      group by org_id
      union all
      select
        h.org_id, case when h.started_at is null then 'ready' else 'running' end, count(*),
        sum(smartqueue.remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms)), null,
        ${drawOf('h.job_id', `case when h.started_at is null then ${stepOf('ready')} else 1 end`)}
      from smartqueue.held_jobs h
      join smartqueue.jobs j on j.org_id = h.org_id and j.id = h.job_id
      group by 1, 2
    ),
    seen as materialized (
      select
        org_id, ${STATUSES.map((status) => `coalesce(sum(jobs) filter (where status = '${status}'), 0)::bigint as ${status}`).join(', ')},
        sum(predicted_ms) / 1000 as predicted_seconds
      from part
      where (select smartqueue.in_term($1::bigint))
      group by org_id
    ),
    spans as materialized (
      select span, date_bin(span * interval '1 second', now(), 'epoch') as at
      from (values (60::smallint), (3600::smallint)) as s (span)
    ),
    sampled as (
      insert into smartqueue.depth_rollups as r (org_id, span, at, samples, ${SUMS})
      select
        org_id, span, at, 1 + floor(extract(epoch from now() - at) / $2::double precision), ${SUMS}
      from seen
      cross join spans
      order by org_id, span
      on conflict (org_id, span, at) do update
      set
        samples = r.samples + 1,
        pending = r.pending + excluded.pending,
        blocked = r.blocked + excluded.blocked,
        ready = r.ready + excluded.ready,
        running = r.running + excluded.running,
        retrying = r.retrying + excluded.retrying,
        predicted_seconds = r.predicted_seconds + excluded.predicted_seconds
    ),
    emptied as (
      update smartqueue.depth_rollups r
      set samples = r.samples + 1
      from spans s
      where r.span = s.span
        and r.at = s.at
        and not exists (select from seen where org_id = r.org_id)
        and (select smartqueue.in_term($1::bigint))
    ),
    newest as (
      insert into smartqueue.depth_samples as s (org_id, at, ${SUMS})
      select org_id, now(), ${SUMS}
      from seen
      order by org_id
      on conflict (org_id) do update
      set
        at = excluded.at,
        pending = excluded.pending,
        blocked = excluded.blocked,
        ready = excluded.ready,
        running = excluded.running,
        retrying = excluded.retrying,
        predicted_seconds = excluded.predicted_seconds
    ),
    gone as (
      delete from smartqueue.depth_samples s
      where not exists (select from seen where org_id = s.org_id)
        and (select smartqueue.in_term($1::bigint))
    ),
    slots as (
      insert into smartqueue.slot_changes (slots)
      select live.slots
      from (
        select coalesce(sum(slots), 0)::integer as slots
        from smartqueue.workers
        where status = 'online'
          and last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
      ) live
      where live.slots is distinct from (select slots from smartqueue.slot_changes order by at desc limit 1)
        and (select smartqueue.in_term($1::bigint))
      on conflict (at) do update
      set slots = excluded.slots
    ),${KEEP_GAUGES}
    select count(*)::int as orgs
    from seen`,
  values: [term, everySeconds],
})
