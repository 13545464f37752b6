import {
  BEGIN_READING,
  declareCursor,
  fetchFromCursor,
  type QueryScalar,
} from '../../../db/queries/named-sources.ts'
import type { PostgresConnection } from '../../handler-api.ts'
import { ask } from './ask.ts'
import { parseExactJson } from './exact-json.ts'
import { isDatabaseError, refuseStatement } from './postgres-error.ts'
import type { Row, RowBatch } from './row-batch.ts'

const FETCH_ROWS = 1000
const SYNTAX_ERROR = '42601'
const NO_SUBQUERY = 'The query failed; it must be one select (or with, or values)'

/** The rows of one query, a batch at a time: the server keeps the rest. They are of one snapshot, and nothing is changed. */
export async function* readQuery(
  connection: PostgresConnection,
  query: string,
  params: readonly QueryScalar[] = [],
): AsyncGenerator<RowBatch> {
  let number = 0
  await connection.query(BEGIN_READING)
  try {
    await ask(connection, declareCursor(query, params))
    for (;;) {
      const rows = await ask(connection, fetchFromCursor(FETCH_ROWS))
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
