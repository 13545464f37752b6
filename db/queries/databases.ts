import type { Query } from '../query.ts'
import type { Statement } from './logins.ts'

/** Returns the owner of the database with this name, or no row if it does not exist. */
export const findDatabase = (name: string): Query<{ owner: string }> => ({
  name: 'find-database',
  text: `
    select pg_get_userbyid(datdba) as owner
    from pg_database
    where datname = $1::text`,
  values: [name],
})

/**
 * Creates the role that owns a database and its tables, or gives it a new password. Its only privilege is to
 * create logins.
 */
export const describeOwner = (name: string, password: string): Query<Statement> => ({
  name: 'describe-owner',
  text: `
    select
      format(
        case when exists (select from pg_roles where rolname = $1::text) then 'alter role %I' else 'create role %I' end
          || ' login createrole password %L',
        $1::text, $2::text
      ) as statement`,
  values: [name, password],
})

/** Creates the database for an owner, or transfers an existing one to it. */
export const describeDatabase = (name: string, owner: string): Query<Statement> => ({
  name: 'describe-database',
  text: `
    select
      format(
        case
          when exists (select from pg_database where datname = $1::text) then 'alter database %I owner to %I'
          else 'create database %I owner %I'
        end,
        $1::text, $2::text
      ) as statement`,
  values: [name, owner],
})

/**
 * Transfers everything that the current role owns in this database to another role: tables, views, sequences,
 * functions, types, its policies, and the logins it has created. ("reassign owned" does not work for the
 * superuser created by initdb.)
 */
export const describeHandover = (owner: string): Query<Statement> => ({
  name: 'describe-handover',
  text: `
    select format('alter table %s owner to %I', c.oid::regclass, $1::text) as statement
    from pg_class c
    where c.relnamespace = 'public'::regnamespace
      and pg_get_userbyid(c.relowner) = current_user
      and c.relkind in ('r', 'p', 'v', 'm', 'S')
      -- The sequence of a column is transferred with its table.
      and not exists (
        select
        from pg_depend d
        where d.classid = 'pg_class'::regclass
          and d.objid = c.oid
          and d.deptype in ('a', 'i')
      )
    union all
    select format('alter routine %s owner to %I', p.oid::regprocedure, $1::text)
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace
      and pg_get_userbyid(p.proowner) = current_user
    union all
    select format('alter type %s owner to %I', t.oid::regtype, $1::text)
    from pg_type t
    where t.typnamespace = 'public'::regnamespace
      and pg_get_userbyid(t.typowner) = current_user
      and t.typtype in ('e', 'd')
    union all
    select format('alter policy %I on %s to %I', p.polname, p.polrelid::regclass, $1::text)
    from pg_policy p
    where p.polroles = array[(select oid from pg_roles where rolname = current_user)]
    union all
    select format('grant %I to %I with admin true, inherit false, set false', r.rolname, $1::text)
    from pg_roles r
    join pg_roles g on g.rolname in ('smartqueue_functions', 'smartqueue_workers')
    where pg_has_role(r.oid, g.oid, 'usage')
      and not r.rolsuper
      and r.rolname <> $1::text`,
  values: [owner],
})
