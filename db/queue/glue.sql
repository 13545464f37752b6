create or replace function settle_dependents(completed uuid[], failed uuid[]) returns integer
language plpgsql security definer set search_path = pg_catalog, smartqueue, pg_temp as $$
begin
  return release_dependents(completed, failed);
end
$$;
create or replace function require_org(p_org uuid) returns void language plpgsql set search_path = pg_catalog, smartqueue, pg_temp as $$
begin
  if (p_org = any (scope_orgs()) or sees_all_orgs() or pg_has_role(session_user, 'smartqueue_workers', 'usage')) is not true then
    raise exception 'The organisation % is not open to this transaction.', p_org using errcode = 'SQ401';
  end if;
end
$$;
create or replace function keep_started_ats() returns trigger language plpgsql set search_path = pg_catalog, smartqueue, pg_temp as $$
begin
  if cardinality(new.started_ats) <> cardinality(new.job_ids) then
    new.started_ats := array(select old.started_ats[array_position(old.job_ids, new.job_ids[n])] from generate_series(1, cardinality(new.job_ids)) n order by n);
  end if;
  return new;
end
$$;
create or replace trigger keep_started_ats before update on leases for each row execute function keep_started_ats();
grant execute on function settle_dependents to smartqueue_functions, smartqueue_workers;
grant execute on function lock_parents to smartqueue_functions, smartqueue_workers;
