-- Row-level security separates organisations, in addition to the organisation that every statement names.
--
-- The API connects as a member of smartqueue_functions. Each of its transactions first enters an organisation: the
-- database checks who is asking and opens that organisation to them (db/accounts/enter.sql). Workers connect as members
-- of smartqueue_workers: they run the jobs of all organisations and see the whole queue, but no account, key or token.
-- Neither role owns a table or bypasses row-level security.
--
-- Both are groups without a login. `npm run admin -- database-login` creates logins in them.

do $$
declare
  v_role text;
begin
  -- Roles belong to the whole server, so another database may have created them, perhaps at this moment.
  foreach v_role in array '{smartqueue_functions, smartqueue_workers}'::text[] loop
    if to_regrole(v_role) is null then
      begin
        execute format('create role %I nologin', v_role);
      exception
        when duplicate_object or unique_violation then null;
        when insufficient_privilege then
          raise exception 'The role % does not exist, and % may not create it.', v_role, current_user
            using errcode = 'insufficient_privilege',
              hint = format('Run as a superuser: create role %I nologin', v_role);
      end;
    end if;
  end loop;
end
$$;

grant usage on schema smartqueue to smartqueue_functions, smartqueue_workers;
-- The runtimes refuse to start on an older schema. The migrator creates this table.
grant select on schema_migrations to smartqueue_functions, smartqueue_workers;

-- The scope of a transaction: which organisations are open, to which user and API key. Only functions that have checked
-- a secret set it (db/accounts/enter.sql), and they sign it, because anybody can set a setting. See ADR 25.

-- The key of a table with at most one row.
create domain only_row as boolean default true constraint only_row_is_true check (value);

create table scope_signing_key (
  only_row only_row primary key,
  -- A random key of 32 bytes, padded to a SHA-256 block and combined with the two HMAC constants.
  inner_block bytea not null,
  outer_block bytea not null
);
comment on table scope_signing_key is 'Signs scopes. Only the owner can read it.';

do $$
declare
  -- Each has 122 random bits.
  v_key constant bytea := sha256(
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
      || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
  );
  v_inner bytea := v_key || decode(repeat('00', 32), 'hex');
  v_outer bytea := v_inner;
begin
  for i in 0 .. 63 loop
    v_outer := set_byte(v_outer, i, get_byte(v_inner, i) # 92);
    v_inner := set_byte(v_inner, i, get_byte(v_inner, i) # 54);
  end loop;
  insert into scope_signing_key (inner_block, outer_block) values (v_inner, v_outer);
end
$$;

create function scope_signature(p_inner_block bytea, p_outer_block bytea, p_scope text) returns text
language sql stable
-- HMAC-SHA-256. A signature is worthless in another transaction, which started at another time or in another process.
return encode(
  sha256(
    p_outer_block
      || sha256(
        p_inner_block
          || convert_to(concat_ws('/', 'scope', extract(epoch from now()), pg_backend_pid(), p_scope), 'UTF8')
      )
  ),
  'hex'
);

create function set_scope(
  p_orgs uuid[], p_user uuid default null, p_key uuid default null, p_all_orgs boolean default false
) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Only for functions that have checked a secret. No login may call it.
declare
  v_scope constant text :=
    concat_ws('/', coalesce(p_orgs, '{}'), coalesce(p_user::text, ''), coalesce(p_key::text, ''), p_all_orgs);
begin
  perform set_config('smartqueue.scope', scope_signature(k.inner_block, k.outer_block, v_scope) || '/' || v_scope, true)
  from scope_signing_key k;
end
$$;

create function verified_scope() returns text[]
language plpgsql stable parallel restricted security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The signature and what it signs; null if it is missing or belongs to another transaction. Takes 12 to 20 µs.
-- Parallel workers are other processes, so only the leader of a parallel query can verify: policies call this in a
-- subquery, which the leader evaluates.
declare
  v_setting constant text := current_setting('smartqueue.scope', true);
  v_signature text;
begin
  select scope_signature(k.inner_block, k.outer_block, substr(v_setting, 66)) into v_signature from scope_signing_key k;
  if left(v_setting, 64) = v_signature then
    return string_to_array(v_setting, '/');
  end if;
  return null;
end
$$;

create function scope_orgs() returns uuid[]
language sql stable parallel restricted
return coalesce((verified_scope())[2], '{}')::uuid[];

create function scope_user() returns uuid
language sql stable parallel restricted
return nullif((verified_scope())[3], '')::uuid;

create function scope_key() returns uuid
language sql stable parallel restricted
return nullif((verified_scope())[4], '')::uuid;

create function sees_all_orgs() returns boolean
language sql stable parallel restricted
return coalesce((verified_scope())[5], 'f') = 't';

-- Where a request came from, for the audit log. Not signed, because no policy uses it.

create function scope_ip() returns inet
language sql stable parallel safe
return nullif(current_setting('smartqueue.ip', true), '')::inet;

create function scope_request() returns text
language sql stable parallel safe
return nullif(current_setting('smartqueue.request', true), '');

-- Policies and column defaults call these with the rights of whoever runs the statement.
grant execute on function
  verified_scope, scope_orgs, sees_all_orgs, scope_user, scope_key, scope_ip, scope_request
to smartqueue_functions;

-- For the migrations below.

create procedure enable_row_security(variadic p_tables text[])
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Forced, so that it applies to the owner too. The policy of_owner lets migrations and definer functions see all rows.
-- The runtimes refuse to start as the owner.
declare
  v_table text;
begin
  foreach v_table in array p_tables loop
    execute format('alter table %I enable row level security', v_table);
    execute format('alter table %I force row level security', v_table);
    execute format('create policy of_owner on %I to %I using (true)', v_table, current_user);
  end loop;
end
$$;

create procedure isolate_by_org(variadic p_tables text[])
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For tables with a column org_id: the API sees the rows of the organisations it has entered, workers see all rows. The
-- scope is read in subqueries, which Postgres evaluates once per statement instead of once per row, and the second one
-- only if it meets a row of an organisation that is not open.
declare
  v_table text;
begin
  foreach v_table in array p_tables loop
    execute format(
      'create policy of_org on %I to smartqueue_functions
       using (org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs()))', v_table
    );
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', v_table);
    call enable_row_security(v_table);
  end loop;
end
$$;
