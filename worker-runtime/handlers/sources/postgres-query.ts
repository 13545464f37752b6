import type { PostgresConnection } from '../../handler-api.ts'
import { ask, type Statement } from './ask.ts'
import { parseExactJson } from './exact-json.ts'
import { isDatabaseError, refuseStatement } from './postgres-error.ts'
import type { Row, RowBatch } from './row-batch.ts'

const SYNTAX_ERROR = '42601'
const NO_SUBQUERY = 'The query failed; it must be one select (or with, or values)'

/** The rows of one query, a batch at a time: the server keeps the rest. They are of one snapshot, and nothing is changed. */
export async function* readQuery(
  connection: PostgresConnection,
  query: string,
  params: readonly Scalar[] = [],
): AsyncGenerator<RowBatch> {
  let number = 0
  await connection.query('begin isolation level repeatable read read only')
  try {
    await ask(connection, declareCursor(query, params))
    for (;;) {
      const rows = await ask(connection, FETCH)
      if (rows.length === 0) break
      yield { rows: rows.map(({ row }) => ({ number: ++number, row: parseExactJson(row) as Row })), bad: [] }
    }
  } catch (error) {
    if (!isDatabaseError(error)) throw error
    throw refuseStatement(error.code === SYNTAX_ERROR ? NO_SUBQUERY : 'The query failed', error)
  } finally {
    // Also after an error: the connection may be asked for something else.
    await connection.query('rollback').catch(() => {})
  }
}

type Scalar = string | number | boolean | null

/**
 * A cursor over a query of a user's own. Each row arrives as JSON text: times and dates keep their zone and precision, and
 * whoever reads it decides what a number is. The last parameter is always there, because a statement with parameters can
 * only be one statement.
 */
const declareCursor = (query: string, params: readonly Scalar[]): Statement<never> => ({
  text: `
    declare source_rows no scroll cursor for
    select row_to_json(source)::text as row
    from (
      ${withoutEnd(query)}
    ) as source
    where $${params.length + 1}::boolean`,
  values: [...params, true],
})

/** People end statements with a semicolon; as a subquery it has none. */
const withoutEnd = (query: string): string => query.trim().replace(/[;\s]+$/, '')

const FETCH: Statement<{ row: string }> = { text: 'fetch forward 1000 from source_rows', values: [] }
