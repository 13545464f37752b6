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
