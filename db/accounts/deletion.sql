-- Deletes accounts and organisations. An account has few rows and is deleted in one transaction. An organisation may
-- have millions, so a request only closes it; the leader then removes its rows in batches. See ADR 21.

create or replace function close_org(p_org uuid) returns void
language sql
-- From this commit on, nobody can enter the organisation, no claim takes its jobs and none of its schedules fires.
-- Workers give back the jobs they have not started; the leader stops those that are running.
begin atomic
  insert into org_deletions (id, requested_by) values (p_org, scope_user());
  insert into pauses (org_id) values (p_org) on conflict on constraint pauses_once do nothing;
  update schedules s
  set paused_at = now(), next_at = null, version = s.version + 1
  where s.org_id = p_org
    and s.next_at is not null;
  select pg_notify('queue_paused', p_org::text);
end;

create or replace function delete_org(p_org uuid, p_name text, p_password_hash text, p_session uuid, p_spare_org uuid)
returns table (outcome text, next_org_id uuid)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For an org_admin of the organisation, or a platform admin, who has entered their password again. The caller's sign-in
-- continues in their oldest other organisation.
--
-- Outcomes: 'deleted'; 'unknown': no such organisation; 'wrong_name'; 'refused': not an org_admin, or wrong password.
declare
  v_user constant uuid := scope_user();
  v_name text;
begin
  -- Not `for update`: foreign keys of new rows do not have to wait, so they cannot deadlock with the locks of
  -- close_org.
  select o.name into v_name from orgs o where o.id = p_org for no key update;
  outcome := case
    when v_name is null or exists (select from org_deletions d where d.id = p_org) then 'unknown'
    when not exists (
      select
      from users u
      left join memberships m on m.org_id = p_org and m.user_id = u.id
      where u.id = v_user
        and u.password_hash = p_password_hash
        and (u.is_admin or m.role = 'org_admin')
        and scope_key() is null
    ) then 'refused'
    when v_name <> p_name then 'wrong_name'
    else 'deleted'
  end;
  if outcome = 'deleted' then
    perform close_org(p_org);
    next_org_id := oldest_org(v_user, p_spare_org);
    update refresh_families f
    set org_id = next_org_id
    where f.id = p_session
      and f.user_id = v_user
      and f.org_id = p_org;
  end if;
  return next;
end
$$;

create or replace function own_orgs() returns table (id uuid, name text, role text, on_deletion text)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- The caller's organisations and what happens to each when their account is deleted: 'left'; 'deleted' if they are the
-- only member; 'blocks' if others would be left without an org_admin.
begin atomic
  select
    o.id, o.name, m.role,
    case
      when others.members = 0 then 'deleted'
      when others.org_admins = 0 and m.role = 'org_admin' then 'blocks'
      else 'left'
    end
  from active_memberships m
  join orgs o on o.id = m.org_id
  cross join lateral (
    select count(*) as members, count(*) filter (where n.role = 'org_admin') as org_admins
    from memberships n
    where n.org_id = m.org_id
      and n.user_id <> m.user_id
  ) others
  where m.user_id = scope_user()
  order by m.created_at, m.org_id;
end;

create or replace function delete_account(p_password_hash text) returns table (outcome text, orgs jsonb)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Deletes the caller's account with everything that refers to it, and the organisations of which they are the only
-- member. `orgs` lists these or, if the outcome is 'blocked', those that would be left without an org_admin. 'refused'
-- means a wrong password.
declare
  v_user constant uuid := scope_user();
begin
  perform from users u where u.id = v_user and u.password_hash = p_password_hash and scope_key() is null for update;
  if not found then
    outcome := 'refused';
    return next;
    return;
  end if;
  -- Locks in the same order as statements that change or remove memberships: if two org_admins leave at the same time,
  -- the second sees that they are the last.
  perform
  from memberships m
  where m.org_id in (select own.org_id from memberships own where own.user_id = v_user)
    and (m.role = 'org_admin' or m.user_id = v_user)
  order by m.org_id, m.user_id
  for update;
  outcome := case
    when exists (select from own_orgs() o where o.on_deletion = 'blocks') then 'blocked' else 'deleted'
  end;
  select coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name)), '[]') into orgs
  from own_orgs() o
  where o.on_deletion = case outcome when 'blocked' then 'blocks' else 'deleted' end;
  if outcome = 'deleted' then
    perform audit(o.id, 'account.deleted', jsonb_build_object('user_id', v_user))
    from own_orgs() o
    where o.on_deletion = 'left';
    perform close_org(o.id) from own_orgs() o where o.on_deletion = 'deleted';
    delete from sign_in_attempts a
    using users u
    where u.id = v_user
      and a.name_hash = sha256(convert_to(lower(u.username), 'UTF8'));
    -- Cascades to memberships, and through them to sign-ins and API keys, and to invitations to and from the account.
    delete from users u where u.id = v_user;
  end if;
  return next;
end
$$;

create or replace function is_deleted_user(p_user uuid) returns boolean
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- For the audit log: an actor who is not visible has either left the organisation or deleted their account.
begin atomic
  select not exists (select from users u where u.id = p_user);
end;

create or replace function remove_org_rows(p_org uuid, p_limit integer, p_is_settled boolean) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
set enable_seqscan = off
as $$
-- Deletes up to `p_limit` rows of an organisation, table by table, referencing rows before referenced ones. It always
-- starts with the first table, so it can stop anywhere and still finds rows written in the meantime. Each condition is
-- served by an index; executions has none, to keep completions cheap, and is bounded by retention instead.
declare
  -- The progress of a job is deleted with it.
  v_tables text[] := '{
    ready_jobs, waiting_jobs, blocked_jobs, reservations, schedule_ticks, schedules, webhook_deliveries,
    webhook_sources, callback_endpoints, callback_secrets, idempotency_keys, api_keys, invitations, refresh_tokens,
    refresh_families, memberships, job_event_groups, attempts, finished_jobs, job_logs, job_dependencies, jobs,
    job_rollups, prediction_rollups, scheduling_gains
  }';
  -- Removed only when nobody can write to them any more.
  v_settled_tables constant text[] := '{
    series_memories, series, org_type_estimates, org_memories, executions, quotas, quota_states, pauses, org_queues,
    audit_log
  }';
  v_jobs constant text := 'any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))';
  v_families constant text :=
    'any (array(select f.id from refresh_families f where f.org_id = $1 order by f.user_id limit $2))';
  v_table text;
  v_condition text;
  v_rows integer;
  v_removed integer := 0;
begin
  if p_is_settled then v_tables := v_tables || v_settled_tables; end if;
  foreach v_table in array v_tables loop
    v_condition := case v_table
      -- Each state has an index of its own.
      when 'waiting_jobs' then $q$ org_id = $1 and state = 'pending' or org_id = $1 and state = 'retrying' $q$
      when 'schedule_ticks' then 'schedule_id = any (array(select s.id from schedules s where s.org_id = $1))'
      when 'refresh_tokens' then 'family_id = ' || v_families
      when 'refresh_families' then 'id = ' || v_families
      when 'job_logs' then 'job_id = ' || v_jobs
      when 'job_dependencies' then 'parent_id = ' || v_jobs
      when 'jobs' then 'org_id = $1 and id = ' || v_jobs
      when 'series_memories' then 'series_id = any (array(select s.id from series s where s.org_id = $1))'
      else 'org_id = $1'
    end;
    execute format(
      'delete from %1$I where ctid = any (array(select ctid from %1$I where %2$s limit $2))', v_table, v_condition
    )
    using p_org, p_limit - v_removed;
    get diagnostics v_rows = row_count;
    v_removed := v_removed + v_rows;
    exit when v_removed >= p_limit;
  end loop;
  return v_removed;
end
$$;

create or replace function remove_deleted_org(p_term bigint, p_limit integer)
returns table (deleted_org uuid, removed integer, told_workers text[], finished boolean)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- One batch for the leader: up to `p_limit` rows of the first deleted organisation that has any left. Returns no row if
-- there are no rows to remove, or if the term is over. `told_workers` lists the workers that lost a running job of a
-- deleted organisation. Such jobs stop at once, even while rows of another organisation are removed first.
--
-- Removal finishes no earlier than a minute after the request. By then, transactions that had entered the organisation
-- have finished, since the functions' transactions take less than half as long, and their rows are found here.
declare
  v_deletion org_deletions;
  v_orgs uuid[];
  v_tokens bigint[];
begin
  if not in_term(p_term) then return; end if;

  v_orgs := array(select d.id from org_deletions d where d.removed_at is null);
  v_tokens := array(select l.token from leases l where l.org_ids && v_orgs order by l.token for update);
  told_workers := array(select distinct l.worker_id from leases l where l.token = any (v_tokens));
  perform drop_from_leases(
    v_tokens,
    array(
      select h.job_id
      from leases l
      cross join lateral unnest(l.job_ids, l.org_ids) as h (job_id, org_id)
      where l.token = any (v_tokens)
        and h.org_id = any (v_orgs)
    )
  );
  for v_deletion in
    select d.*
    from org_deletions d
    where d.removed_at is null
    order by d.requested_at
    for update skip locked
  loop
    deleted_org := v_deletion.id;
    -- Whoever holds a lease must not wait for a ready job (cancel.sql), so rows are removed by the next call.
    finished := told_workers = '{}' and v_deletion.requested_at < now() - interval '1 minute';
    removed := case when told_workers = '{}' then remove_org_rows(deleted_org, p_limit, finished) else 0 end;
    finished := finished and removed < p_limit;
    if finished then
      delete from orgs o where o.id = deleted_org;
      update org_deletions d set removed_at = now() where d.id = deleted_org;
    end if;
    if finished or removed > 0 or told_workers <> '{}' then
      return next;
      return;
    end if;
  end loop;
end
$$;

grant execute on function delete_org, own_orgs, delete_account, is_deleted_user to smartqueue_functions;
grant execute on function remove_deleted_org to smartqueue_workers;
