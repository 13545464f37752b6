create or replace function charge_bytes(p_org uuid, p_bytes bigint) returns boolean
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Charges for bytes that are kept beside jobs, such as a webhook delivery, and holds the quotas until the commit. Returns
-- false if they would exceed the quota: then nothing is charged.
declare
  v_state constant quota_states := lock_quota_state(p_org, 0);
begin
  if v_state.day_used + p_bytes > (select q.payload_bytes_per_day from quotas_of(p_org) q) then return false; end if;
  update quota_states s
  set
    day_at = v_state.day_at,
    day_slots = v_state.day_slots,
    day_used = v_state.day_used + p_bytes,
    hour_bytes = v_state.day_slots[v_state.day_at % 25 + 1] + p_bytes
  where s.org_id = p_org;
  return true;
end
$$;

grant execute on function charge_bytes to smartqueue_functions;
