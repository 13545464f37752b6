import type { Query } from '../query.ts'
import { IDLE_IN_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from '../rules/timeouts.ts'

// DDL takes no parameters. So the server builds these statements with everything quoted, and they are sent
// back to it.
export type Statement = { statement: string }

export type Login = { name: string; password: string; group: string | null }

/** Creates a login in a group or, without one, a role that may create logins. An existing one gets the password. */
export const describeLogin = ({ name, password, group }: Login): Query<Statement> => ({
  name: 'describe-login',
  text: `
    select
      format(
        -- No attribute is taken away from an existing role: that takes a superuser, and a new role has none.
        case when to_regrole(quote_ident($1::text)) is null then 'create role %1$I' else 'alter role %1$I' end
          || ' login password %2$L'
          || case when $3::text is null then ' createrole' else '; grant %3$I to %1$I' end,
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

/** Creates the database for an owner, or transfers one that belongs to another. */
export const describeDatabase = (name: string, owner: string): Query<Statement> => ({
  name: 'describe-database',
  text: `
    select
      format(
        case when d.oid is null then 'create database %I owner %I' else 'alter database %I owner to %I' end,
        wanted.name, wanted.owner
      ) as statement
    from (values ($1::text, $2::text)) as wanted (name, owner)
    left join pg_database d on d.datname = wanted.name
    where pg_get_userbyid(d.datdba) is distinct from wanted.owner`,
  values: [name, owner],
})
