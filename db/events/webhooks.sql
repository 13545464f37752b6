create or replace function receiving_source(p_source uuid) returns setof webhook_sources
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- The source to whose URL a delivery was sent, with its secrets, with which the functions verify the signature. Only
-- the exact id, which is part of that URL, finds it.
begin atomic
  select s.*
  from webhook_sources s
  where s.id = p_source
    and not exists (select from org_deletions d where d.id = s.org_id and d.removed_at is null);
end;

create or replace function source_view(p_source webhook_sources)
returns table (
  id uuid, name text, scheme text, verification jsonb, filter jsonb, template jsonb, enabled boolean, secret_hint text,
  previous_expires_at timestamptz, created_by uuid, created_at timestamptz, updated_at timestamptz
)
language sql stable
-- A source as the API shows it. The hint is the end of the secret, enough to tell two apart. A short secret has no
-- hint, because its end would reveal too much of it.
begin atomic
  select
    p_source.id, p_source.name, p_source.scheme, p_source.verification, p_source.filter, p_source.template,
    p_source.enabled,
    case when char_length(p_source.secret) >= 16 then right(p_source.secret, 4) else '' end,
    case when p_source.previous_expires_at > now() then p_source.previous_expires_at end,
    p_source.created_by, p_source.created_at, p_source.updated_at;
end;

create or replace function source_target(p_source webhook_sources) returns jsonb
language sql stable
-- For the audit log.
return jsonb_build_object('source_id', p_source.id, 'name', p_source.name, 'scheme', p_source.scheme);

grant execute on function receiving_source, source_view, source_target to smartqueue_functions;
