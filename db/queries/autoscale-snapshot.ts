/**
 * Takes the snapshot that `readAutoscale` reads. Each job counts at most the drain goal, because it takes one slot
 * however many workers there are: four jobs of an hour ask for four slots.
 *
 * Measured with a million ready jobs: 2 ms, and 0.25 s when `queue_snapshot` renews the sums by lane. 100,000 jobs
 * that wake within the lead time add 35 ms.
 */
import type { Query } from '../query.ts'
import type { ScalingSettings } from '../rules/autoscale.ts'

/** Ticks of the same time, of all organisations. */
export type NearTick = {
  cron: string
  timezone: string
  next_at: string
  /** Predicted, of the jobs of one tick each. */
  work_ms: number
  /** By the clock of the database. */
  now: string
}

/** Schedules with ticks within the lead time that nobody has paused, the first to come first. */
export const findNearTicks = (
  term: string,
  { lead_seconds, drain_goal_seconds }: ScalingSettings,
  { limit, defaultLog }: { limit: number /** ln(ms) of a job of an unknown type. */; defaultLog: number },
): Query<NearTick> => ({
  name: 'find-near-ticks',
  text: `
    select
      r.cron, r.timezone, r.next_at, now(),
      sum(
        least(exp(coalesce(s.mean_log, t.mean_log, $5::double precision)), $4::double precision * 1000)
      )::double precision as work_ms
    from (
      select org_id, cron, timezone, next_at, job ->> 'type' as type, job ->> 'name' as name
      from smartqueue.schedules
      where next_at <= now() + $2::double precision * interval '1 second'
        and (select smartqueue.in_term($1::bigint))
    ) r
    left join smartqueue.series s on s.org_id = r.org_id and s.type = r.type and s.name = r.name
    left join lateral smartqueue.starting_estimate(r.org_id, case when s.mean_log is null then r.type end) t on true
    where r.type = any ((select smartqueue.handled_types())::text[])
      and r.org_id not in (select org_id from smartqueue.pauses where type is null)
      and (r.org_id, r.type) not in (select org_id, type from smartqueue.pauses where type is not null)
    group by r.cron, r.timezone, r.next_at
    order by r.next_at, r.cron, r.timezone
    limit $3::int`,
  values: [term, lead_seconds, limit, drain_goal_seconds, defaultLog],
})

/**
 * `ticksSeconds`: predicted work of ticks within the lead time. No row: the term is over.
 *
 * Arrivals count over one full minute and the current one. With one more, unforeseen bursts wait 26 to 31 s (p95)
 * instead of 22, for 1 % of the pod-hours (npm run bench -- autoscale). Of jobs that wake within the lead time, the
 * first 5,000 stand for all.
 *
 * The forecast is scaled from the lead time to one drain goal, because T is the work of one worker within a drain
 * goal. The current minute is taken to be like the first forecast one.
 */
export const takeAutoscaleSnapshot = (snapshot: {
  term: string
  settings: ScalingSettings
  ticksSeconds: number
}): Query<{ queued_seconds: number }> => ({
  name: 'take-autoscale-snapshot',
  text: `
    with queue as materialized (
      select
        (
          select coalesce(sum(least(ms, jobs * $4::double precision * 1000)), 0)
          from unnest(q.lane_jobs, q.lane_ms) as lane (jobs, ms)
        ) as queued_ms,
        (select coalesce(sum(least(ms, $4::double precision * 1000)), 0) from unnest(q.running_ms) ms) as running_ms
      from smartqueue.queue_snapshot(true) q
      where q.only_row
    ),
    waking as materialized (
      select count(*) as jobs
      from smartqueue.waiting_jobs
      where wake_at < now() + $5::double precision * interval '1 second'
    ),
    first_waking as materialized (
      select count(*) as jobs, sum(least(r.predicted_ms, $4::double precision * 1000)) filter (where r.may_run) as ms
      from (
        select
          j.predicted_ms,
          -- Sets that are made once, and no look at the pauses for each job.
          j.type = any ((select smartqueue.handled_types())::text[])
          and j.org_id not in (select org_id from smartqueue.pauses where type is null)
          and (j.org_id, j.type) not in (select org_id, type from smartqueue.pauses where type is not null) as may_run
        from (
          select org_id, job_id
          from smartqueue.waiting_jobs
          where wake_at < now() + $5::double precision * interval '1 second'
          order by wake_at
          limit 5000
        ) w
        -- Limited, or all jobs there are would be read for these.
        cross join lateral (
          select org_id, type, predicted_ms
          from smartqueue.jobs
          where org_id = w.org_id
            and id = w.job_id
          limit 1
        ) j
      ) r
    ),
    arrivals as materialized (
      select
        coalesce(sum(least(work_ms, jobs * $4::double precision * 1000)), 0)
          / (extract(epoch from now() - date_trunc('minute', now()))::double precision + 60) as ms_per_second
      from smartqueue.load_minutes
      where at >= date_trunc('minute', now()) - interval '1 minute'
    ),
    forecast as materialized (
      select
        ahead.p50, ahead.p90,
        case
          when f.only_row is null then 'there is no forecast yet'
          when f.unusable_because is not null then f.unusable_because
          -- The leader forecasts every minute: something keeps it from doing so.
          when f.made_at < now() - interval '3 minutes' then concat(
            'the newest forecast is ', round(extract(epoch from now() - f.made_at) / 60), ' minutes old'
          )
          when f.from_at + cardinality(f.p50_ms) * interval '1 minute'
            < now() + $5::double precision * interval '1 second'
          then 'the forecast does not reach to the end of the lead time'
        end as unused_because
      from (values (true)) as always (is_there)
      left join smartqueue.load_forecasts f on true
      left join lateral (
        select
          sum(m.p50_ms * during.share) / 1000 * ($4::double precision / $5::double precision) as p50,
          sum(m.p90_ms * during.share) / 1000 * ($4::double precision / $5::double precision) as p90
        from unnest(f.p50_ms, f.p90_ms) with ordinality as m (p50_ms, p90_ms, n)
        cross join lateral (
          select
            extract(
              epoch from
              least(f.from_at + m.n * interval '1 minute', now() + $5::double precision * interval '1 second')
              - greatest(case when m.n > 1 then f.from_at + (m.n - 1) * interval '1 minute' end, now())
            )::double precision / 60 as share
        ) during
        where during.share > 0
      ) ahead on true
    )
    insert into smartqueue.autoscale_snapshots as s (
      queued_seconds, running_seconds, arriving_per_second, scheduled_seconds, forecast_p50_seconds,
      forecast_p90_seconds, no_forecast_because, workers, slots_per_worker, drain_goal_seconds, lead_seconds,
      min_workers, max_workers
    )
    select
      q.queued_ms / 1000, q.running_ms / 1000, a.ms_per_second / 1000,
      $2::double precision + coalesce(w.ms, 0) / 1000 * all_waking.jobs / greatest(w.jobs, 1),
      case when f.unused_because is null then f.p50 end,
      case when f.unused_because is null then f.p90 end,
      f.unused_because, live.workers, $3::int, $4::double precision, $5::double precision, $6::int, $7::int
    from queue q
    cross join waking all_waking
    cross join first_waking w
    cross join arrivals a
    cross join forecast f
    cross join (
      select count(*)::int as workers
      from smartqueue.workers
      where status = 'online'
        and not smartqueue.is_silent(last_seen)
    ) live
    where (select smartqueue.in_term($1::bigint))
    on conflict (only_row) do update
    set
      taken_at = now(), workers = excluded.workers,
      queued_seconds = excluded.queued_seconds, running_seconds = excluded.running_seconds,
      arriving_per_second = excluded.arriving_per_second, scheduled_seconds = excluded.scheduled_seconds,
      forecast_p50_seconds = excluded.forecast_p50_seconds, forecast_p90_seconds = excluded.forecast_p90_seconds,
      no_forecast_because = excluded.no_forecast_because, slots_per_worker = excluded.slots_per_worker,
      drain_goal_seconds = excluded.drain_goal_seconds, lead_seconds = excluded.lead_seconds,
      min_workers = excluded.min_workers, max_workers = excluded.max_workers
    returning queued_seconds`,
  values: [
    snapshot.term,
    snapshot.ticksSeconds,
    snapshot.settings.slots_per_worker,
    snapshot.settings.drain_goal_seconds,
    snapshot.settings.lead_seconds,
    snapshot.settings.min_workers,
    snapshot.settings.max_workers,
  ],
})
