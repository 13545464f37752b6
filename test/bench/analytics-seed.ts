import type { TestDatabase } from '../support/database.ts'
import type { Tenant } from '../support/jobs.ts'

const SERIES = 40

/** Makes ids differ. */
let seeded = 0

export type FinishedJobs = {
  count: number
  /** Over how long they came, at an even rate. */
  days?: number
  /** How many ended with one statement, and so with one row of events. */
  group?: number
}

/** What jobs leave behind when they have ended: every hundredth was cancelled, and three of a hundred failed. */
export const seedFinishedJobs = async (
  database: TestDatabase,
  tenant: Tenant,
  { count, days = 29, group = 20 }: FinishedJobs,
): Promise<void> => {
  const { sql } = database
  const offset = seeded
  seeded += count
  await sql(
    `insert into smartqueue.series (org_id, type, name, runs, mean_log, deviation_log)
    select $1, 'type-' || n % 5, 'series-' || n, 1000, 7.5, 0.6
    from generate_series(0, ${SERIES - 1}) n
    on conflict do nothing`,
    [tenant.orgId],
  )
  await sql(`create unlogged table seed as
    select
      n, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8'
        || lpad(to_hex(n + ${offset}), 15, '0'))::uuid as id,
      s.id as series_id, s.type, s.name, at as created_at, last_at + interval '1 minute' as finished_at, predicted_ms,
      greatest(1, least(50000, predicted_ms * exp(0.5 * noise))) as runtime_ms,
      (case when n % 100 = 7 then 'cancelled' when n % 100 in (11, 12, 13) then 'failed' else 'completed' end)::smartqueue.job_state
        as state
    from (
      select
        n, now() - interval '1 day' * (${days} * (1 - n / ${count}::double precision)) - interval '2 minutes' as at,
        now() - interval '1 day' * (${days} * (1 - (n / ${group} + 1) * ${group} / ${count}::double precision))
          - interval '2 minutes' as last_at,
        exp(7.5 + 1.2 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())) as predicted_ms,
        sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) as noise
      from generate_series(0, ${count - 1}) n
    ) made
    join (select id, type, name, row_number() over () - 1 as number from smartqueue.series where org_id = '${tenant.orgId}') s
      on s.number = n % ${SERIES}`)
  await sql(
    `insert into smartqueue.jobs (
      org_id, id, created_by, series_id, type, name, payload, priority, tags, max_attempts, initial_delay_seconds,
      backoff_multiplier, cpu_units, memory_mb, on_parent_failure, predicted_ms, predicted_p90_ms, prediction_source, rank_base,
      rank_slope, created_at, residual_log
    )
    select
      $1, id, $2, series_id, type, name, '{"url": "https://example.com/orders/import"}', 'normal', '{}', 3, 5, 2, 1, 64, 'fail',
      predicted_ms, predicted_ms * 2, 'lstm', 0, 1, created_at, 0.1 * (random() - 0.5)
    from seed
    order by n`,
    [tenant.orgId, tenant.userId],
  )
  await sql(
    `insert into smartqueue.finished_jobs (
      org_id, job_id, series_id, state, attempts, error, fingerprint, worker_id, started_at, runtime_ms, finished_at
    )
    select
      $1, id, series_id, state, case state when 'cancelled' then 0 else 1 end,
      case state when 'failed' then '{"code": "broken", "message": "It broke."}'::jsonb end,
      case state when 'failed' then '0' end, 'w', case when state <> 'cancelled' then finished_at - runtime_ms * interval '1 millisecond' end,
      case when state <> 'cancelled' then runtime_ms end, finished_at
    from seed
    order by n`,
    [tenant.orgId],
  )
  await sql(
    `insert into smartqueue.job_event_groups (org_id, at, job_ids, states, attempts, reasons, ats)
    select
      $1, case what when 0 then min(created_at) else min(finished_at) end, array_agg(id order by n),
      case what when 0 then '{ready}' else array_agg(state order by n) end, case what when 0 then '{0}'::int[] else '{1}' end, '{}',
      case what when 0 then '{}' else array_agg(finished_at order by n) end
    from seed, generate_series(0, 1) what
    group by n / ${group}, what
    order by 2`,
    [tenant.orgId],
  )
  await sql(
    `insert into smartqueue.executions (org_id, series_id, at, outcome, job_ids, ran_ms)
    select $1, series_id, finished_at, 'completed', array[id], array[runtime_ms]
    from seed
    where state = 'completed'
      and n > ${count - 50_000}
    order by n`,
    [tenant.orgId],
  )
  await sql('drop table seed')
}

/** Ready jobs, as a submission leaves them, without their events. */
export const seedQueuedJobs = async ({ sql }: TestDatabase, tenant: Tenant, count: number): Promise<void> => {
  await sql(
    `insert into smartqueue.ready_jobs (org_id, job_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms)
    select
      $1,
      (lpad(to_hex((extract(epoch from now()) * 1000)::bigint + n / 100), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
        || '8' || lpad(to_hex(n), 15, '0'))::uuid,
      id, type, smartqueue.flow_of($1, null), 10 + n % 60, 0, 1, 64, 2000
    from generate_series(1, ${count}) n
    join (select id, type, row_number() over () - 1 as number from smartqueue.series where org_id = $1) s on s.number = n % ${SERIES}
    order by n`,
    [tenant.orgId],
  )
}
