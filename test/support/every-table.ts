import type { TestDatabase } from './database.ts'
import { jobInState } from './job-in-state.ts'
import type { Tenant } from './jobs.ts'

/** Inserts a row of the organisation into every table with an organisation column. */
export const fillTables = async (database: TestDatabase, tenant: Tenant): Promise<void> => {
  for (const state of ['pending', 'blocked', 'ready', 'retrying', 'completed', 'failed'] as const) {
    await jobInState(database.run, tenant, state)
  }
  const job = await jobInState(database.run, tenant, 'running')
  const ids = [tenant.orgId, tenant.userId, job]
  const rows = [
    `insert into smartqueue.api_keys (id, org_id, user_id, name, prefix, key_hash, scopes)
     values (gen_random_uuid(), $1, $2, 'k', 'p', decode(md5(random()::text), 'hex'), '{jobs:read}')`,
    `insert into smartqueue.invitations (id, org_id, role, token_hash, invited_by, expires_at)
     values (gen_random_uuid(), $1, 'user', decode(md5(random()::text), 'hex'), $2, now() + interval '1 day')`,
    `insert into smartqueue.quotas (org_id) values ($1)`,
    `insert into smartqueue.quota_states (org_id) values ($1) on conflict do nothing`,
    `insert into smartqueue.idempotency_keys values ($1, 'key', '', '{}', now())`,
    `insert into smartqueue.job_logs (org_id, job_id, attempt, at, level, message) values ($1, $3, 1, now(), 'info', 'm')`,
    `insert into smartqueue.job_progress (org_id, job_id) values ($1, $3)`,
    `insert into smartqueue.pauses (org_id, type) values ($1, 'none')`,
    `insert into smartqueue.reservations (job_id, org_id, worker_id, cpu_units, memory_mb) values ($3, $1, 'w', 1, 1)`,
    `insert into smartqueue.org_type_estimates (org_id, type, runs, mean_log, deviation_log, median_log) values ($1, 'test', 1, 1, 1, 1)`,
    `insert into smartqueue.org_memories (org_id, memory) values ($1, '')`,
    `insert into smartqueue.series_memories (series_id, org_id, memory) select id, org_id, '' from smartqueue.series where org_id = $1`,
    `insert into smartqueue.webhook_sources (org_id, id, name, scheme, secret, template) values ($1, $3, 's', 'hmac', 'x', '{}')`,
    `insert into smartqueue.webhook_deliveries (org_id, id, source_id, status, headers) values ($1, $3, $3, 'filtered', '{}')`,
    `insert into smartqueue.schedules (org_id, id, name, cron, timezone, catch_up, job)
     values ($1, $3, 's', '* * * * *', 'UTC', 'one', '{}')`,
    `insert into smartqueue.schedule_ticks (org_id, schedule_id, tick_at, outcome) values ($1, $3, now(), 'skipped')`,
    `insert into smartqueue.callback_endpoints (org_id, id, url, events) values ($1, $3, 'https://example.com/', '{}')`,
    `insert into smartqueue.callback_secrets (org_id, secret) values ($1, 'x')`,
    `insert into smartqueue.job_rollups (org_id, span, at) values ($1, 60, now())`,
    `insert into smartqueue.prediction_rollups values ($1, '', now(), 1, 0, 0, 0, 1, 1, '{}')`,
    `insert into smartqueue.scheduling_gains values ($1, now(), 1, 0, 0, 0, 0)`,
    `insert into smartqueue.org_queues values ($1, 1, '{}', '{}', '{}', 0, 0, '{}', 0, '{}', '{}', 0, 0)
     on conflict do nothing`,
  ]
  for (const row of rows) {
    const used = ids.map((_, n) => n + 1).filter((n) => row.includes(`$${n}`))
    const text = used.reduce((sql, n, i) => sql.replaceAll(`$${n}`, `$${i + 1}::uuid`), row)
    await database.sql(
      text,
      used.map((n) => ids[n - 1]),
    )
  }
}

export const tablesWithOrg = async (database: TestDatabase): Promise<string[]> => {
  const rows = await database.sql<{ table: string }>(
    `select c.relname as table
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
     where c.relkind = 'r' and c.relnamespace = 'smartqueue'::regnamespace
     order by 1`,
  )
  return rows.map(({ table }) => table)
}
