/** What tells how deep the queue of an organisation is now and will be: fragments of the statements that ask for it. */
import { REMAINING_MS } from './analytics-depth.ts'
import { QUEUE_SUMS, type QueueSums, SILENT_SECONDS } from './queue-facts.ts'

export type DepthSums = {
  pending: number
  blocked: number
  ready: number
  running: number
  retrying: number
  predicted_ms: number
  oldest_ready_seconds: number | null
}

/**
 * So many of each kind are counted, 10 ms at most; of a deeper queue the leader's newest look tells. The oldest is looked for
 * among those that were submitted first.
 */
const MOST_COUNTED = 10_000

const countUpTo = (source: string): string => `(
          select count(*)
          from (select from ${source} limit ${MOST_COUNTED}) counted
        )`

const orSample = (count: string, column: string): string =>
  `case when ${count} < ${MOST_COUNTED} then ${count} else greatest(${count}, n.${column}) end`

/** The depth at this moment, as the CTE `depth`. `$1` is the organisation. */
export const DEPTH_NOW = `
    ready as materialized (
      select count(*) as jobs, coalesce(sum(predicted_ms), 0)::double precision as ms, min(ready_at) as oldest
      from (
        select predicted_ms, ready_at
        from ready_jobs
        where org_id = $1::uuid
        order by job_id
        limit ${MOST_COUNTED}
      ) first
    ),
    held as materialized (
      select count(h.started_at) as running, count(*) - count(h.started_at) as held, coalesce(sum(${REMAINING_MS}), 0) as ms
      from held_jobs h
      join jobs j on j.org_id = h.org_id and j.id = h.job_id
      where h.org_id = $1::uuid
    ),
    waiting as materialized (
      select
        ${countUpTo(`waiting_jobs where org_id = $1::uuid and state = 'pending'`)} as pending,
        ${countUpTo(`waiting_jobs where org_id = $1::uuid and state = 'retrying'`)} as retrying,
        ${countUpTo(`blocked_jobs where org_id = $1::uuid`)} as blocked
    ),
    depth as materialized (
      select jsonb_build_object(
        'pending', ${orSample('w.pending', 'pending')}, 'blocked', ${orSample('w.blocked', 'blocked')},
        'ready', h.held + ${orSample('r.jobs', 'ready')}, 'running', h.running,
        'retrying', ${orSample('w.retrying', 'retrying')},
        'predicted_ms', case
          when r.jobs < ${MOST_COUNTED} then r.ms + h.ms
          else greatest(r.ms + h.ms, n.predicted_seconds * 1000)
        end,
        'oldest_ready_seconds', extract(epoch from now() - r.oldest)
      ) as sums
      from ready r
      cross join held h
      cross join waiting w
      left join depth_samples n on n.org_id = $1::uuid
    )`

/** Times are in seconds from now. */
export type ForecastFacts = {
  slots: number
  paused: boolean
  queue: QueueSums | null
  /** Of the last 60 minutes, oldest first; the present one is not among them. */
  minutes: number[]
  /** Jobs an hour: of the present hour of the day, a day and a week ago, and of the next. */
  same_hour: number | null
  next_hour: number | null
  mean_ms: number | null
  waking: { in_seconds: number; predicted_ms: number }[]
  schedules: { cron: string; timezone: string; predicted_ms: number | null }[]
}

/** The hour of the day at which it will be, on those days of which something is known. */
const seasonal = (hours: number): string => `(
          select avg(submitted - delayed)
          from job_rollups
          where org_id = $1::uuid
            and span = 3600
            and at in (
              date_bin('1 hour', now(), 'epoch') + interval '${hours} hours' - interval '1 day',
              date_bin('1 hour', now(), 'epoch') + interval '${hours} hours' - interval '7 days'
            )
        )`

export const LIVE_SLOTS = `(
          select coalesce(sum(slots), 0)
          from workers
          where status = 'online'
            and last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
        )`

export const IS_PAUSED = `exists (select from pauses where org_id = $1::uuid and type is null)`

/**
 * What the forecast is made from, as one JSON object. Jobs that schedules have submitted are taken out of what came, as the
 * ticks ahead are known; so are jobs that were to be run later, which wait for their time.
 */
export const FORECAST_FACTS = `jsonb_build_object(
        'slots', ${LIVE_SLOTS}, 'paused', ${IS_PAUSED}, 'queue', ${QUEUE_SUMS},
        'minutes', (
          select jsonb_agg(greatest(0, coalesce(r.submitted - r.delayed, 0) - coalesce(t.fired, 0)) order by m.at)
          from generate_series(
            date_trunc('minute', now()) - interval '60 minutes', date_trunc('minute', now()) - interval '1 minute',
            interval '1 minute'
          ) as m (at)
          left join job_rollups r on r.org_id = $1::uuid and r.span = 60 and r.at = m.at
          left join (
            select date_trunc('minute', t.fired_at) as at, count(*) as fired
            from schedules s
            join schedule_ticks t
              on t.schedule_id = s.id
              and t.tick_at > now() - interval '62 minutes'
              and t.outcome = 'fired'
            where s.org_id = $1::uuid
            group by 1
          ) t on t.at = m.at
        ),
        'same_hour', ${seasonal(0)},
        'next_hour', ${seasonal(1)},
        'mean_ms', (
          select sum(runtime_ms) / nullif(sum(ran), 0)
          from job_rollups
          where org_id = $1::uuid
            and span = 3600
            and at > now() - interval '1 day'
        ),
        'waking', (
          select coalesce(
            jsonb_agg(
              jsonb_build_object('in_seconds', extract(epoch from w.wake_at - now()), 'predicted_ms', j.predicted_ms)
            ),
            '[]'
          )
          from (
            select org_id, job_id, wake_at
            from (
              (select org_id, job_id, wake_at from waiting_jobs where org_id = $1::uuid and state = 'pending' limit ${MOST_COUNTED})
              union all
              (select org_id, job_id, wake_at from waiting_jobs where org_id = $1::uuid and state = 'retrying' limit ${MOST_COUNTED})
            ) one
            where wake_at < now() + interval '1 hour'
            limit 2000
          ) w
          cross join lateral (
            select predicted_ms
            from jobs
            where org_id = w.org_id
              and id = w.job_id
            offset 0
          ) j
        ),
        'schedules', (
          select coalesce(
            jsonb_agg(jsonb_build_object('cron', s.cron, 'timezone', s.timezone, 'predicted_ms', exp(e.mean_log))), '[]'
          )
          from (
            select org_id, cron, timezone, job
            from schedules
            where org_id = $1::uuid
              and next_at < now() + interval '1 hour'
            order by next_at
            limit 50
          ) s
          left join streams e on e.org_id = s.org_id and e.type = s.job ->> 'type' and e.name = s.job ->> 'name'
        )
      )`
