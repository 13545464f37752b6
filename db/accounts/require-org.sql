create or replace function require_org(p_org uuid) returns void
language plpgsql stable
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For definer functions, which policies do not hold back: raises SQ401 unless this transaction may act in the organisation.
begin
  if
    (p_org = any (scope_orgs()) or sees_all_orgs() or pg_has_role(session_user, 'smartqueue_workers', 'usage'))
    is not true
  then
    raise exception 'The organisation % is not open to this transaction.', p_org using errcode = 'SQ401';
  end if;
end
$$;
