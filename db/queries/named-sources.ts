import type { Query, QueryValue } from '../query.ts'

/** A reader of one snapshot that can change nothing. */
export const BEGIN_READING = 'begin isolation level repeatable read read only'

/**
 * A cursor over a query of a tenant's own, in a database that the operator has named for it.
 * Each row arrives as JSON text: times and dates keep their zone and precision, and whoever reads it decides what a number is.
 * The last parameter is always there, because a statement with parameters can only be one statement.
 */
export const declareCursor = (query: string, params: readonly QueryScalar[]): Query<never> => ({
  name: 'declare-source-cursor',
  text: `
    declare source_rows no scroll cursor for
    select row_to_json(source)::text as row
    from (
      ${withoutEnd(query)}
    ) as source
    where $${params.length + 1}::boolean`,
  values: [...params, true],
})

export type QueryScalar = Exclude<QueryValue, readonly unknown[]>

/** People end statements with a semicolon; as a subquery it has none. */
const withoutEnd = (query: string): string => query.trim().replace(/[;\s]+$/, '')

export const fetchFromCursor = (count: number): Query<{ row: string }> => ({
  name: 'fetch-source-rows',
  text: `fetch forward ${Math.trunc(count)} from source_rows`,
  values: [],
})

/**
 * Ends the session of a job in a database that the operator has named, with the statement that it runs. By its name
 * too: behind a pooler the pid is not that of a process of this server.
 */
export const endJobSession = (pid: number, applicationName: string): Query<{ ended: boolean }> => ({
  name: 'end-job-session',
  text: `
    select pg_terminate_backend(pid) as ended
    from pg_stat_activity
    where pid = $1::int
      and application_name = $2::text
      and usename = current_user`,
  values: [pid, applicationName],
})
