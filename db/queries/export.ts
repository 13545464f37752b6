/**
 * The data of an organisation or a person as lines of JSON. Postgres builds them; the functions only pass
 * them on. Columns are listed explicitly, so that a secret or hash that is added to a table never gets into
 * an export.
 *
 * Each type of line is read in pages, ordered by its key. A page is limited by rows and bytes, whichever
 * comes first: a payload may have 256 KiB and a result 2 MiB, and a Worker has 128 MB of memory.
 */
import type { Query } from '../query.ts'

/** `line` is null if there was nothing to write at this position but more may follow. */
export type ExportLine = { position: string; line: string | null }

export type ExportStep = {
  readonly type: string
  readonly page: (ownerId: string, after: string | null) => Query<ExportLine>
  /** The format of positions. */
  readonly position: RegExp
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const PAGE_BYTES = 4 * 1024 * 1024

/**
 * `lines` selects `key` and `line`. `$1` is the owner, `$2` the key of the last line before the page, `$3`
 * the row limit.
 */
const step = (
  of: '-of-org' | '-of-user',
  type: string,
  rows: number,
  lines: string,
  position = UUID,
): ExportStep => ({
  type,
  position,
  page: (ownerId, after) => ({
    name: `export${of}-${type}`,
    text: bounded(lines),
    values: [ownerId, after, rows],
  }),
})

const bounded = (lines: string): string => `
    select key::text as position, line
    from (
      select
        key, line, row_number() over (order by key) as row,
        coalesce(sum(octet_length(line)) over (order by key), 0) as bytes
      from (${lines}
      ) page
    ) measured
    where row = 1 or bytes <= ${PAGE_BYTES}
    order by row`

const SMALL = 1_000
/** For lines that may contain a payload. */
const LARGE = 100

/**
 * A limit on stored bytes, which are known without reading the values: a job with a large payload ends its
 * page early.
 */
const STORED_BYTES = 1024 * 1024

const JOBS = `
        with sized as materialized (
          select
            j.id, row_number() over (order by j.id) as row,
            sum(pg_column_size(j.payload) + coalesce(pg_column_size(f.result), 0)) over (order by j.id) as bytes
          from (
            select id, payload
            from smartqueue.jobs
            where org_id = $1::uuid
              and ($2::uuid is null or id > $2::uuid)
            order by id
            limit $3::int
          ) j
          left join smartqueue.finished_jobs f on f.org_id = $1::uuid and f.job_id = j.id
        )
        select
          sized.id as key,
          json_build_object(
            'type', 'job', 'id', o.id, 'created_by', o.created_by, 'triggered_by', o.triggered_by, 'job_type', o.type,
            'name', o.name, 'status', o.status, 'priority', o.priority, 'tags', o.tags, 'payload', o.payload,
            'timeout_seconds', o.timeout_seconds, 'max_attempts', o.max_attempts,
            'initial_delay_seconds', o.initial_delay_seconds, 'backoff_multiplier', o.backoff_multiplier,
            'cpu_units', o.cpu_units, 'memory_mb', o.memory_mb, 'run_at', o.run_at, 'deadline', o.deadline,
            'on_parent_failure', o.on_parent_failure, 'callback_url', o.callback_url, 'traceparent', o.traceparent,
            'predicted_ms', o.predicted_ms, 'predicted_p90_ms', o.predicted_p90_ms, 'created_at', o.created_at,
            'started_at', o.started_at, 'finished_at', o.finished_at, 'runtime_ms', o.runtime_ms,
            'worker_id', o.worker_id, 'progress', o.progress, 'progress_note', o.progress_note,
            'attempts', o.attempts, 'result', o.result, 'error', o.error,
            'depends_on', array(
              select d.parent_id
              from smartqueue.job_dependencies d
              where d.child_id = o.id
              order by d.parent_id
            ),
            'unfinished_attempts', (
              select coalesce(
                json_agg(
                  json_build_object(
                    'attempt', a.attempt, 'outcome', a.outcome, 'error', a.error, 'worker_id', a.worker_id,
                    'started_at', a.started_at, 'finished_at', a.finished_at
                  )
                  order by a.id
                ),
                '[]'
              )
              from smartqueue.attempts a
              where a.org_id = $1::uuid
                and a.job_id = o.id
            )
          )::text as line
        from sized
        cross join lateral (
          select *
          from smartqueue.job_overview
          where org_id = $1::uuid
            and id = sized.id
          offset 0
        ) o
        where sized.row = 1 or sized.bytes <= ${STORED_BYTES}`

/** How many jobs one page searches for logs: most may have none. */
const LOGS_OF = 10_000

/**
 * The logs of the next jobs, in index order and sorted job by job, so that the limit stops the scan. A page
 * that is not full ends with the last job it has searched.
 */
const LOGS = `
        with lines as materialized (
          select
            j.id as job_id, l.id,
            json_build_object(
              'type', 'job_log', 'job_id', j.id, 'attempt', l.attempt, 'at', l.at, 'level', l.level, 'message', l.message
            )::text as line
          from (
            select id
            from smartqueue.jobs
            where org_id = $1::uuid
              and ($2::text is null or id >= split_part($2::text, '/', 1)::uuid)
            order by id
            limit ${LOGS_OF}
          ) j
          join smartqueue.job_logs l on l.job_id = j.id
          where $2::text is null
            or j.id > split_part($2::text, '/', 1)::uuid
            or l.id > split_part($2::text, '/', 2)::bigint
          order by j.id, l.id
          limit $3::int
        )
        select (job_id || '/' || lpad(id::text, 19, '0')) collate "C" as key, line
        from lines
        union all
        select id || '/9223372036854775807', null
        from (
          select id, row_number() over (order by id desc) as from_end
          from (
            select id
            from smartqueue.jobs
            where org_id = $1::uuid
              and ($2::text is null or id >= split_part($2::text, '/', 1)::uuid)
            order by id
            limit ${LOGS_OF}
          ) j
        ) looked_at
        where from_end = 1
          and ($2::text is null or id > split_part($2::text, '/', 1)::uuid)
          and (select count(*) from lines) < $3::int`

/** The types of lines, in the order in which they are exported. */
export const ORG_EXPORT: readonly ExportStep[] = [
  step(
    '-of-org',
    'organisation',
    1,
    `
        select
          o.id as key,
          json_build_object(
            'type', 'organisation', 'id', o.id, 'name', o.name, 'created_at', o.created_at,
            'quotas', (
              select json_build_object(
                'submissions_per_minute', q.submissions_per_minute, 'queued_jobs', q.queued_jobs,
                'running_jobs', q.running_jobs, 'payload_bytes_per_day', q.payload_bytes_per_day
              )
              from smartqueue.quotas_of(o.id) q
            ),
            'pauses', (
              select coalesce(json_agg(json_build_object('job_type', p.type, 'paused_at', p.paused_at)), '[]')
              from smartqueue.pauses p
              where p.org_id = o.id
            )
          )::text as line
        from smartqueue.orgs o
        where o.id = $1::uuid
          and ($2::uuid is null or o.id > $2::uuid)
        limit $3::int`,
  ),
  step(
    '-of-org',
    'member',
    SMALL,
    `
        select
          m.user_id as key,
          json_build_object(
            'type', 'member', 'user_id', m.user_id, 'username', u.username, 'role', m.role, 'joined_at', m.created_at
          )::text as line
        from smartqueue.memberships m
        join smartqueue.users u on u.id = m.user_id
        where m.org_id = $1::uuid
          and ($2::uuid is null or m.user_id > $2::uuid)
        order by m.user_id
        limit $3::int`,
  ),
  step(
    '-of-org',
    'invitation',
    SMALL,
    `
        select
          i.id as key,
          json_build_object(
            'type', 'invitation', 'id', i.id, 'role', i.role, 'user_id', i.user_id, 'invited_by', i.invited_by,
            'created_at', i.created_at, 'expires_at', i.expires_at, 'accepted_at', i.accepted_at,
            'accepted_by', i.accepted_by, 'revoked_at', i.revoked_at
          )::text as line
        from smartqueue.invitations i
        where i.org_id = $1::uuid
          and ($2::uuid is null or i.id > $2::uuid)
        order by i.id
        limit $3::int`,
  ),
  step(
    '-of-org',
    'api_key',
    SMALL,
    `
        select
          k.id as key,
          json_build_object(
            'type', 'api_key', 'id', k.id, 'user_id', k.user_id, 'name', k.name, 'prefix', k.prefix, 'scopes', k.scopes,
            'created_at', k.created_at, 'expires_at', k.expires_at, 'last_used_at', k.last_used_at,
            'revoked_at', k.revoked_at
          )::text as line
        from smartqueue.api_keys k
        where k.org_id = $1::uuid
          and ($2::uuid is null or k.id > $2::uuid)
        order by k.id
        limit $3::int`,
  ),
  step(
    '-of-org',
    'schedule',
    LARGE,
    `
        select
          s.id as key,
          json_build_object(
            'type', 'schedule', 'id', s.id, 'name', s.name, 'cron', s.cron, 'timezone', s.timezone,
            'catch_up', s.catch_up, 'job', s.job, 'paused_at', s.paused_at, 'next_at', s.next_at,
            'last_tick_at', s.last_tick_at, 'skipped_ticks', s.skipped_ticks, 'created_by', s.created_by,
            'created_at', s.created_at, 'updated_at', s.updated_at
          )::text as line
        from smartqueue.schedules s
        where s.org_id = $1::uuid
          and ($2::uuid is null or s.id > $2::uuid)
        order by s.id
        limit $3::int`,
  ),
  step(
    '-of-org',
    'webhook_source',
    LARGE,
    `
        select
          w.id as key,
          json_build_object(
            'type', 'webhook_source', 'id', w.id, 'name', w.name, 'scheme', w.scheme, 'verification', w.verification,
            'filter', w.filter, 'template', w.template, 'enabled', w.enabled, 'created_by', w.created_by,
            'created_at', w.created_at, 'updated_at', w.updated_at
          )::text as line
        from smartqueue.webhook_sources w
        where w.org_id = $1::uuid
          and ($2::uuid is null or w.id > $2::uuid)
        order by w.id
        limit $3::int`,
  ),
  step(
    '-of-org',
    'webhook_delivery',
    LARGE,
    `
        select
          d.id as key,
          json_build_object(
            'type', 'webhook_delivery', 'id', d.id, 'source_id', d.source_id, 'received_at', d.received_at,
            'status', d.status, 'reason', d.reason, 'event_id', d.event_id, 'event_type', d.event_type,
            'job_id', d.job_id, 'replay_of', d.replay_of, 'headers', d.headers, 'body', d.body
          )::text as line
        from smartqueue.webhook_deliveries d
        where d.org_id = $1::uuid
          and ($2::uuid is null or d.id > $2::uuid)
        order by d.id
        limit $3::int`,
  ),
  step(
    '-of-org',
    'callback_endpoint',
    SMALL,
    `
        select
          e.id as key,
          json_build_object(
            'type', 'callback_endpoint', 'id', e.id, 'url', e.url, 'events', e.events, 'disabled_at', e.disabled_at,
            'disabled_reason', e.disabled_reason, 'created_by', e.created_by, 'created_at', e.created_at,
            'updated_at', e.updated_at
          )::text as line
        from smartqueue.callback_endpoints e
        where e.org_id = $1::uuid
          and ($2::uuid is null or e.id > $2::uuid)
        order by e.id
        limit $3::int`,
  ),
  step('-of-org', 'job', SMALL, JOBS),
  step('-of-org', 'job_log', SMALL, LOGS, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\/\d{19}$/),
  step(
    '-of-org',
    'audit_entry',
    SMALL,
    `
        select
          a.id as key,
          json_build_object(
            'type', 'audit_entry', 'id', a.id::text, 'at', a.at, 'actor_id', a.actor_id, 'api_key_id', a.api_key_id,
            'action', a.action, 'target', a.target, 'ip', host(a.ip), 'request_id', a.request_id
          )::text as line
        from smartqueue.audit_log a
        where a.org_id = $1::uuid
          and ($2::bigint is null or a.id > $2::bigint)
        order by a.id
        limit $3::int`,
    /^\d{1,18}$/,
  ),
]

/**
 * A person's own data. Their activity in an organisation, its jobs and its audit log belong to that
 * organisation.
 */
export const ACCOUNT_EXPORT: readonly ExportStep[] = [
  step(
    '-of-user',
    'account',
    1,
    `
        select
          u.id as key,
          json_build_object(
            'type', 'account', 'id', u.id, 'username', u.username, 'is_admin', u.is_admin, 'created_at', u.created_at
          )::text as line
        from smartqueue.users u
        where u.id = $1::uuid
          and ($2::uuid is null or u.id > $2::uuid)
        limit $3::int`,
  ),
  step(
    '-of-user',
    'membership',
    SMALL,
    `
        select
          m.org_id as key,
          json_build_object(
            'type', 'membership', 'org_id', m.org_id, 'org_name', o.name, 'role', m.role, 'joined_at', m.created_at
          )::text as line
        from smartqueue.memberships m
        join smartqueue.orgs o on o.id = m.org_id
        where m.user_id = $1::uuid
          and ($2::uuid is null or m.org_id > $2::uuid)
        order by m.org_id
        limit $3::int`,
  ),
  step(
    '-of-user',
    'sign_in',
    SMALL,
    `
        select
          f.id as key,
          json_build_object(
            'type', 'sign_in', 'id', f.id, 'org_id', f.org_id, 'created_at', f.created_at,
            'last_used_at', f.last_used_at, 'ip', f.ip, 'user_agent', f.user_agent, 'expires_at', f.expires_at,
            'revoked_at', f.revoked_at
          )::text as line
        from smartqueue.refresh_families f
        where f.user_id = $1::uuid
          and ($2::uuid is null or f.id > $2::uuid)
        order by f.id
        limit $3::int`,
  ),
  step(
    '-of-user',
    'api_key',
    SMALL,
    `
        select
          k.id as key,
          json_build_object(
            'type', 'api_key', 'id', k.id, 'org_id', k.org_id, 'name', k.name, 'prefix', k.prefix, 'scopes', k.scopes,
            'created_at', k.created_at, 'expires_at', k.expires_at, 'last_used_at', k.last_used_at,
            'revoked_at', k.revoked_at
          )::text as line
        from smartqueue.memberships m
        join smartqueue.api_keys k on k.org_id = m.org_id and k.user_id = m.user_id
        where m.user_id = $1::uuid
          and ($2::uuid is null or k.id > $2::uuid)
        order by k.id
        limit $3::int`,
  ),
  step(
    '-of-user',
    'invitation',
    SMALL,
    `
        select
          i.id as key,
          json_build_object(
            'type', 'invitation', 'id', i.id, 'org_id', i.org_id, 'role', i.role, 'created_at', i.created_at,
            'expires_at', i.expires_at, 'accepted_at', i.accepted_at, 'revoked_at', i.revoked_at
          )::text as line
        from smartqueue.invitations i
        where i.user_id = $1::uuid
          and ($2::uuid is null or i.id > $2::uuid)
        order by i.id
        limit $3::int`,
  ),
]
