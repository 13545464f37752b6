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

-- The scope of a transaction, as db/accounts/enter.sql sets it.

create function scope_orgs() returns uuid[]
language sql stable parallel safe
return coalesce(nullif(current_setting('smartqueue.orgs', true), ''), '{}')::uuid[];

create function sees_all_orgs() returns boolean
language sql stable parallel safe
return coalesce(current_setting('smartqueue.all_orgs', true), '') = 'on';

create function scope_user() returns uuid
language sql stable parallel safe
return nullif(current_setting('smartqueue.user', true), '')::uuid;

create function scope_key() returns uuid
language sql stable parallel safe
return nullif(current_setting('smartqueue.key', true), '')::uuid;

create function scope_name() returns text
language sql stable parallel safe
-- The name of the user who wants to sign in or is being invited.
return lower(nullif(current_setting('smartqueue.name', true), ''));

create function scope_secret() returns bytea
language sql stable parallel safe
-- The hash of a refresh token, an API key or an invitation's token. Whoever presents it may see its row.
return decode(nullif(current_setting('smartqueue.secret', true), ''), 'hex');

create function scope_ip() returns inet
language sql stable parallel safe
return nullif(current_setting('smartqueue.ip', true), '')::inet;

create function scope_request() returns text
language sql stable parallel safe
return nullif(current_setting('smartqueue.request', true), '');

create function scope_source() returns uuid
language sql stable parallel safe
-- The webhook source whose URL was called. Its row is visible.
return nullif(current_setting('smartqueue.source', true), '')::uuid;

-- Policies and column defaults call these with the rights of whoever runs the statement.
grant execute on function
  scope_orgs, sees_all_orgs, scope_user, scope_key, scope_name, scope_secret, scope_ip, scope_request, scope_source
to smartqueue_functions, smartqueue_workers;

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
-- For tables with a column org_id: the API sees the rows of the organisations it has entered, workers see all rows.
-- The scope is read in a subquery, which Postgres evaluates once for each statement and not for each row.
declare
  v_table text;
begin
  foreach v_table in array p_tables loop
    execute format(
      'create policy of_org on %I to smartqueue_functions
       using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]))', v_table
    );
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', v_table);
    call enable_row_security(v_table);
  end loop;
end
$$;
