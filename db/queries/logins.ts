import type { Query } from '../query.ts'
import { IDLE_IN_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from '../rules/timeouts.ts'

// DDL takes no parameters. So the server builds these statements with everything quoted, and they are sent
// back to it.
export type Statement = { statement: string }

export type Login = { name: string; password: string; group: string }

/** Creates the login, or gives an existing one the password and the group. */
export const describeLogin = ({ name, password, group }: Login): Query<Statement> => ({
  name: 'describe-login',
  text: `
    select
      format(
        -- A new role can do nothing special unless that is said; to say of an existing one that it cannot takes a superuser.
        case when exists (select from pg_roles where rolname = $1::text) then 'alter role %1$I' else 'create role %1$I' end
          || ' login password %2$L; grant %3$I to %1$I',
        $1::text, $2::text, $3::text
      ) as statement`,
  values: [name, password, group],
})

/**
 * Sets the timeouts of this functions login or, without a name, of all functions logins without any: members do not
 * inherit the settings of a group.
 */
export const describeTimeouts = (group: string, name: string | null = null): Query<Statement> => ({
  name: 'describe-timeouts',
  text: `
    select format('alter role %I set %s = %s', login.rolname, timeout.name, timeout.ms) as statement
    from pg_roles login
    cross join (
      values
        ('statement_timeout', $3::integer),
        ('lock_timeout', $4::integer),
        ('idle_in_transaction_session_timeout', $5::integer)
    ) as timeout (name, ms)
    where login.rolcanlogin
      and not login.rolsuper
      and exists (select from pg_roles where rolname = $1::text and pg_has_role(login.oid, oid, 'usage'))
      and case
        when $2::text is null then not exists (
          select
          from pg_db_role_setting stored
          cross join unnest(stored.setconfig) as entry
          where stored.setrole = login.oid
            and stored.setdatabase in (0, (select oid from pg_database where datname = current_database()))
            and starts_with(entry, timeout.name || '=')
        )
        else login.rolname = $2::text
      end
    order by login.rolname, timeout.name`,
  values: [group, name, STATEMENT_TIMEOUT_MS, LOCK_TIMEOUT_MS, IDLE_IN_TRANSACTION_TIMEOUT_MS],
})

/** Revokes what Postgres grants to public by default: temporary tables, which could shadow ours. */
export const describeRevocations = (): Query<Statement> => ({
  name: 'describe-revocations',
  text: `
    select format('revoke temporary on database %I from public', current_database()) as statement
    where has_database_privilege('public', current_database(), 'temporary')`,
  values: [],
})

/** Takes a login away. What it is connected with goes on until it disconnects. */
export const describeDrop = (name: string): Query<Statement> => ({
  name: 'describe-drop',
  text: `
    select format('drop role %I', $1::text) as statement`,
  values: [name],
})

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
