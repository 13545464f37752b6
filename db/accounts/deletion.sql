-- Deletes accounts and organisations. An account has few rows and is deleted in one transaction. An organisation may
-- have millions, so a request only closes it; the leader then removes its rows in batches. See ADR 21.

create or replace function close_org(in_org uuid) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- From this commit on, nobody can enter the organisation, no claim takes its jobs and none of its schedules fires.
-- Workers give back the jobs they have not started; the leader stops those that are running.
begin
  insert into org_deletions (id, requested_by) values (in_org, scope_user());
  insert into pauses (org_id, paused_by) values (in_org, scope_user()) on conflict on constraint pauses_once do nothing;
  update schedules s
  set paused_at = now(), next_at = null, version = s.version + 1
  where s.org_id = in_org
    and s.next_at is not null;
  perform pg_notify('queue_paused', in_org::text);
end
$$;

create or replace function delete_org(in_org uuid, in_name text, in_password_hash text, in_session uuid, spare_org uuid)
returns table (outcome text, next_org_id uuid)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For an org_admin of the organisation, or a platform admin, who has just confirmed their password. Its hash is
-- compared again here, in case the password was changed in the meantime. The caller's sign-in continues in their oldest
-- other organisation; a caller without one gets a new personal organisation with the id `spare_org`.
--
-- Outcomes: 'deleted'; 'unknown': no such organisation; 'wrong_name'; 'refused': not an org_admin, or wrong password.
declare
  v_user constant uuid := scope_user();
  v_name text;
begin
  -- Not `for update`: foreign keys of new rows do not have to wait, so they cannot deadlock with the locks of
  -- close_org.
  select o.name into v_name from orgs o where o.id = in_org for no key update;
  if not found or exists (select from org_deletions d where d.id = in_org) then
    return query select 'unknown', null::uuid;
    return;
  end if;
  perform
  from users u
  left join memberships m on m.org_id = in_org and m.user_id = u.id
  where u.id = v_user
    and u.password_hash = in_password_hash
    and (u.is_admin or m.role = 'org_admin')
    and scope_key() is null;
  if not found then
    return query select 'refused', null::uuid;
    return;
  end if;
  if v_name <> in_name then
    return query select 'wrong_name', null::uuid;
    return;
  end if;

  perform close_org(in_org);
  select m.org_id into next_org_id
  from memberships m
  where m.user_id = v_user
    and not exists (select from org_deletions d where d.id = m.org_id)
  order by m.created_at, m.org_id
  limit 1;
  if next_org_id is null then
    perform add_org(spare_org, u.username, v_user) from users u where u.id = v_user;
    next_org_id := spare_org;
  end if;
  update refresh_families f
  set org_id = next_org_id
  where f.id = in_session
    and f.user_id = v_user
    and f.org_id = in_org;
  outcome := 'deleted';
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
      when not exists (select from memberships n where n.org_id = m.org_id and n.user_id <> m.user_id) then 'deleted'
      when m.role = 'org_admin' and not exists (
        select
        from memberships n
        where n.org_id = m.org_id
          and n.user_id <> m.user_id
          and n.role = 'org_admin'
      ) then 'blocks'
      else 'left'
    end
  from memberships m
  join orgs o on o.id = m.org_id
  where m.user_id = scope_user()
    and not exists (select from org_deletions d where d.id = m.org_id)
  order by m.created_at, m.org_id;
end;

create or replace function delete_account(in_password_hash text) returns table (outcome text, orgs jsonb)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Deletes the caller's account with everything that refers to it, and the organisations of which they are the only
-- member. `orgs` lists these or, if the outcome is 'blocked', those that would be left without an org_admin. 'refused'
-- means a wrong password.
declare
  v_user constant uuid := scope_user();
  v_org uuid;
begin
  perform from users u where u.id = v_user and u.password_hash = in_password_hash and scope_key() is null for update;
  if not found then
    return query select 'refused', null::jsonb;
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
  select jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name)) into orgs
  from own_orgs() o
  where o.on_deletion = 'blocks';
  if orgs is not null then
    return query select 'blocked', delete_account.orgs;
    return;
  end if;

  select coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name)), '[]') into orgs
  from own_orgs() o
  where o.on_deletion = 'deleted';
  perform audit(o.id, 'account.deleted', jsonb_build_object('user_id', v_user))
  from own_orgs() o
  where o.on_deletion = 'left';
  for v_org in select o.id from own_orgs() o where o.on_deletion = 'deleted' loop
    perform close_org(v_org);
  end loop;
  delete from sign_in_attempts a
  using users u
  where u.id = v_user
    and a.name_hash = sha256(convert_to(lower(u.username), 'UTF8'));
  -- Cascades to memberships, and through them to sign-ins and API keys, and to invitations to and from the account.
  delete from users u where u.id = v_user;
  outcome := 'deleted';
  return next;
end
$$;

create or replace function is_deleted_user(in_user uuid) returns boolean
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- For the audit log: an actor who is not visible has either left the organisation or deleted their account.
begin atomic
  select not exists (select from users u where u.id = in_user);
end;

create or replace function remove_org_rows(in_org uuid, most integer, is_settled boolean) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
set enable_seqscan = off
as $$
-- Deletes up to `most` rows of an organisation, table by table, referencing rows before referenced ones. It always
-- starts with the first table, so it can stop anywhere and still finds rows written in the meantime. Each condition is
-- served by an index; executions has none, to keep completions cheap, and is bounded by retention instead.
declare
  v_step text[];
  v_rows integer;
  v_removed integer := 0;
begin
  foreach v_step slice 1 in array array[
    ['ready_jobs', 'org_id = $1'],
    ['waiting_jobs', $q$ org_id = $1 and state = 'pending' $q$],
    ['waiting_jobs', $q$ org_id = $1 and state = 'retrying' $q$],
    ['blocked_jobs', 'org_id = $1'],
    ['reservations', 'org_id = $1'],
    ['schedule_ticks', 'schedule_id = any (array(select s.id from schedules s where s.org_id = $1))'],
    ['schedules', 'org_id = $1'],
    ['webhook_deliveries', 'org_id = $1'],
    ['webhook_sources', 'org_id = $1'],
    ['callback_endpoints', 'org_id = $1'],
    ['callback_secrets', 'org_id = $1'],
    ['idempotency_keys', 'org_id = $1'],
    ['api_keys', 'org_id = $1'],
    ['invitations', 'org_id = $1'],
    ['refresh_tokens', $q$ family_id = any (
      array(select f.id from refresh_families f where f.org_id = $1 order by f.user_id limit $2)
    ) $q$],
    ['refresh_families', $q$ id = any (
      array(select f.id from refresh_families f where f.org_id = $1 order by f.user_id limit $2)
    ) $q$],
    ['memberships', 'org_id = $1'],
    ['job_event_groups', 'org_id = $1'],
    ['attempts', 'org_id = $1'],
    ['finished_jobs', 'org_id = $1'],
    ['job_logs', 'job_id = any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))'],
    ['job_dependencies', 'parent_id = any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))'],
    -- Progress is deleted with its job.
    ['jobs', 'org_id = $1 and id = any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))'],
    ['job_rollups', 'org_id = $1'],
    ['prediction_rollups', 'org_id = $1'],
    ['depth_rollups', 'org_id = $1'],
    ['depth_samples', 'org_id = $1'],
    ['scheduling_gains', 'org_id = $1'],
    -- From here on, only tables that nobody can write to any more.
    ['settled', ''],
    ['series_memories', 'series_id = any (array(select s.id from series s where s.org_id = $1))'],
    ['series', 'org_id = $1'],
    ['org_type_estimates', 'org_id = $1'],
    ['org_memories', 'org_id = $1'],
    ['executions', 'org_id = $1'],
    ['quotas', 'org_id = $1'],
    ['quota_states', 'org_id = $1'],
    ['pauses', 'org_id = $1'],
    ['audit_log', 'org_id = $1']
  ] loop
    if v_step[1] = 'settled' then
      exit when not is_settled;
      continue;
    end if;
    execute format(
      'delete from %1$I where ctid = any (array(select ctid from %1$I where %2$s limit $2))', v_step[1], v_step[2]
    )
    using in_org, most - v_removed;
    get diagnostics v_rows = row_count;
    v_removed := v_removed + v_rows;
    exit when v_removed >= most;
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
    finished := v_deletion.requested_at < now() - interval '1 minute';
    removed := remove_org_rows(deleted_org, p_limit, finished);
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
