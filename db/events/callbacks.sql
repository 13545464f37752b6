create or replace function new_signing_secret() returns text
language sql volatile
-- In the format of the Standard Webhooks specification: 32 bytes, of which 244 bits are random.
return 'whsec_'
  || encode(decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'), 'base64');

create or replace function callback_address(p_org uuid, p_url text)
returns table (secret text, previous_secret text, disabled boolean)
language sql rows 1
-- The first callback of an organisation creates its secret. A concurrent one waits and then uses the same secret.
begin atomic
  insert into callback_secrets (org_id, secret)
  select p_org, new_signing_secret()
  where not exists (select from callback_secrets where org_id = p_org)
  on conflict (org_id) do nothing;

  select
    s.secret, case when s.previous_expires_at > now() then s.previous_secret end,
    exists (select from callback_endpoints where org_id = p_org and url = p_url and disabled_at is not null)
  from callback_secrets s
  where s.org_id = p_org;
end;

create or replace function callbacks_of_job(in_org uuid, told_job uuid) returns setof uuid
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- Runs as the owner: under row-level security no index serves a condition on a JSON field, as ->> is not leakproof.
begin atomic
  select id
  from jobs
  where org_id = in_org
    and triggered_by ->> 'job_id' = told_job::text
    and triggered_by ->> 'kind' = 'callback'
    and is_open(in_org);
end;

create or replace function endpoint_target(p_endpoint callback_endpoints) returns jsonb
language sql immutable
-- For the audit log, which stores URLs without their query string, because it may contain a secret.
return jsonb_build_object(
  'endpoint_id', p_endpoint.id, 'url', split_part(p_endpoint.url, '?', 1), 'events', p_endpoint.events
);

grant execute on function endpoint_target, callbacks_of_job to smartqueue_functions;
grant execute on function callback_address to smartqueue_workers;
grant execute on function new_signing_secret to smartqueue_functions, smartqueue_workers;
