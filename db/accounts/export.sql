-- The data of an organisation or of a person as lines of JSON, page by page. These functions run with the rights of
-- their caller, under row-level security. Columns are listed explicitly, so that a secret or hash that is added to a
-- table never gets into an export.

create or replace function export_lines() returns table (owner text, owner_id uuid, type text, key uuid, line json)
language sql stable
-- Everything that an owner has few of, so each page can sort all lines after its key. It acts like a view: Postgres
-- inlines it, and plans only the branch of the requested type and owner. A person's activity in an organisation, its
-- jobs and its audit log belong to that organisation.
begin atomic
  select 'org', o.id, l.type, o.id, to_json(l)
  from orgs o
  cross join lateral (
    select
      'organisation' as type, o.id, o.name, o.created_at,
      (
        select json_build_object(
          'submissions_per_minute', q.submissions_per_minute, 'queued_jobs', q.queued_jobs,
          'running_jobs', q.running_jobs, 'payload_bytes_per_day', q.payload_bytes_per_day,
          'weight', q.weight
        )
        from quotas_of(o.id) q
      ) as quotas,
      array(
        select json_build_object('job_type', p.type, 'paused_at', p.paused_at) from pauses p where p.org_id = o.id
      ) as pauses
  ) l
  union all
  select 'org', m.org_id, l.type, m.user_id, to_json(l)
  from memberships m
  join users u on u.id = m.user_id
  cross join lateral (select 'member' as type, m.user_id, u.username, m.role, m.created_at as joined_at) l
  union all
  select 'org', i.org_id, l.type, i.id, to_json(l)
  from invitations i
  cross join lateral (
    select
      'invitation' as type, i.id, i.role, i.user_id, i.invited_by, i.created_at, i.expires_at, i.accepted_at,
      i.accepted_by, i.revoked_at
  ) l
  union all
  select 'org', k.org_id, l.type, k.id, to_json(l)
  from api_keys k
  cross join lateral (
    select
      'api_key' as type, k.id, k.user_id, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.last_used_at,
      k.revoked_at
  ) l
  union all
  select 'org', s.org_id, l.type, s.id, to_json(l)
  from schedules s
  cross join lateral (
    select
      'schedule' as type, s.id, s.name, s.cron, s.timezone, s.catch_up, s.job, s.paused_at, s.next_at,
      (select max(t.tick_at) from schedule_ticks t where t.schedule_id = s.id) as last_tick_at, s.skipped_ticks,
      s.created_by, s.created_at, s.updated_at
  ) l
  union all
  select 'org', w.org_id, l.type, w.id, to_json(l)
  from webhook_sources w
  cross join lateral (
    select
      'webhook_source' as type, w.id, w.name, w.scheme, w.verification, w.filter, w.template, w.enabled, w.created_by,
      w.created_at, w.updated_at
  ) l
  union all
  select 'org', e.org_id, l.type, e.id, to_json(l)
  from callback_endpoints e
  cross join lateral (
    select
      'callback_endpoint' as type, e.id, e.url, e.events, e.disabled_at, e.disabled_reason, e.created_by, e.created_at,
      e.updated_at
  ) l
  union all
  select 'user', u.id, l.type, u.id, to_json(l)
  from users u
  cross join lateral (select 'account' as type, u.id, u.username, u.is_admin, u.created_at) l
  union all
  select 'user', m.user_id, l.type, m.org_id, to_json(l)
  from memberships m
  join orgs o on o.id = m.org_id
  cross join lateral (select 'membership' as type, m.org_id, o.name as org_name, m.role, m.created_at as joined_at) l
  union all
  select 'user', f.user_id, l.type, f.id, to_json(l)
  from refresh_families f
  cross join lateral (
    select
      'sign_in' as type, f.id, f.org_id, f.created_at, f.last_used_at, f.ip, f.user_agent, f.expires_at, f.revoked_at
  ) l
  union all
  select 'user', m.user_id, l.type, k.id, to_json(l)
  from memberships m
  join api_keys k on k.org_id = m.org_id and k.user_id = m.user_id
  cross join lateral (
    select
      'api_key' as type, k.id, k.org_id, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.last_used_at,
      k.revoked_at
  ) l
  union all
  select 'user', i.user_id, l.type, i.id, to_json(l)
  from invitations i
  cross join lateral (
    select 'invitation' as type, i.id, i.org_id, i.role, i.created_at, i.expires_at, i.accepted_at, i.revoked_at
  ) l;
end;

create or replace function export_job(p_org uuid, p_job uuid) returns json
language sql stable
begin atomic
  select to_json(l)
  from (
    select
      'job' as type, o.id, o.created_by, o.triggered_by, o.type as job_type, o.name, o.status, o.priority, o.tags,
      o.payload, o.timeout_seconds, o.max_attempts, o.initial_delay_seconds, o.backoff_multiplier, o.cpu_units,
      o.memory_mb, o.run_at, o.deadline, o.on_parent_failure, o.callback_url, o.fairness_key, o.traceparent,
      o.predicted_ms, o.predicted_p90_ms, o.created_at, o.started_at, o.finished_at, o.runtime_ms, o.worker_id, o.progress,
      o.progress_note, o.attempts, o.result, o.error,
      array(select d.parent_id from job_dependencies d where d.child_id = o.id order by d.parent_id) as depends_on,
      array(
        select json_build_object(
          'attempt', a.attempt, 'outcome', a.outcome, 'error', a.error, 'worker_id', a.worker_id,
          'started_at', a.started_at, 'finished_at', a.finished_at
        )
        from attempts a
        where a.org_id = p_org
          and a.job_id = o.id
        order by a.id
      ) as unfinished_attempts
    from job_overview o
    where o.org_id = p_org
      and o.id = p_job
  ) l;
end;

create or replace function export_page(p_owner text, p_owner_id uuid, p_type text, p_after text)
returns table (key text, line text)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The next lines of a type in the order of their keys, after a key or from the beginning: up to 1,000 lines and 4 MiB,
-- whichever comes first, but at least one. A payload may have 256 KiB and a result 2 MiB, and a Worker has 128 MB of
-- memory. So lines are fetched one by one, and lines beyond the page are not built. A page that ends with keys without
-- lines returns the last of these keys, from which the next page continues.
declare
  -- Keys are ids. Keys of logs also have a number, and keys of audit entries are numbers.
  v_after constant uuid := substring(p_after, '^[0-9a-f]{8}-[0-9a-f-]{27}');
  v_lines refcursor;
  v_key text;
  v_line text;
  v_count integer := 0;
  v_bytes integer := 0;
begin
  case p_type
  when 'job' then
    open v_lines for
    select j.id, export_job(p_owner_id, j.id)
    from jobs j
    where j.org_id = p_owner_id
      and (v_after is null or j.id > v_after)
    order by j.id
    limit 1000;
  when 'job_log' then
    -- Most of the next 10,000 jobs may have no logs. Indexes serve both orders, so the scan stops with the page.
    open v_lines for
    select
      j.id || '/' || coalesce(lpad(o.id::text, 19, '0'), '9223372036854775807'),
      case
        when o.id is not null then
          json_build_object(
            'type', p_type, 'job_id', j.id, 'attempt', o.attempt, 'at', o.at, 'level', o.level, 'message', o.message
          )
      end
    from (
      select n.id
      from jobs n
      where n.org_id = p_owner_id
        and (v_after is null or n.id >= v_after)
      order by n.id
      limit 10000
    ) j
    left join job_logs o on o.job_id = j.id
      and (v_after is null or j.id > v_after or o.id > split_part(p_after, '/', 2)::bigint)
    where v_after is null
      or j.id > v_after
      or o.id is not null
    order by j.id, o.id
    limit 10000;
  when 'webhook_delivery' then
    open v_lines for
    select d.id, to_json(l)
    from webhook_deliveries d
    cross join lateral (
      select
        p_type as type, d.id, d.source_id, d.received_at, d.status, d.reason, d.event_id, d.event_type, d.job_id,
        d.replay_of, d.headers, d.body
    ) l
    where d.org_id = p_owner_id
      and (v_after is null or d.id > v_after)
    order by d.id
    limit 1000;
  when 'audit_entry' then
    open v_lines for
    select a.id, to_json(l)
    from audit_log a
    cross join lateral (
      select
        p_type as type, a.id::text, a.at, a.actor_id, a.api_key_id, a.action, a.target, host(a.ip) as ip, a.request_id
    ) l
    where a.org_id = p_owner_id
      and (p_after is null or a.id > p_after::bigint)
    order by a.id
    limit 1000;
  else
    open v_lines for
    select l.key, l.line
    from export_lines() l
    where l.owner = p_owner
      and l.owner_id = p_owner_id
      and l.type = p_type
      and (v_after is null or l.key > v_after)
    order by l.key
    limit 1000;
  end case;
  loop
    fetch v_lines into v_key, v_line;
    exit when not found or v_count = 1000;
    v_bytes := v_bytes + coalesce(octet_length(v_line), 0);
    exit when v_count > 0 and v_bytes > 4 * 1024 * 1024;
    key := v_key;
    line := v_line;
    if line is not null then
      v_count := v_count + 1;
      return next;
    end if;
  end loop;
  close v_lines;
  if key is not null and line is null then
    return next;
  end if;
end
$$;

grant execute on function export_lines, export_job, export_page to smartqueue_functions;
