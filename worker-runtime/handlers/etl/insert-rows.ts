import { ask } from '../sources/ask.ts'
import { type DatabaseError, isDatabaseError } from '../sources/postgres-error.ts'
import type { NumberedRow } from '../sources/row-batch.ts'
import { insertRows } from './load-statements.ts'
import type { Loading, Refuse } from './loading.ts'
import { requireColumns } from './open-load.ts'
import { groupByFields, type RowGroup } from './row-groups.ts'

/** Rows as they can be inserted, by their fields. One without its key is refused: it would be a new row each time. */
export function groupRows(loading: Loading, records: readonly NumberedRow[], refuse: Refuse): RowGroup[] {
  const { mode } = loading
  const isUpsert = mode.mode === 'upsert'
  const keyed = isUpsert ? withKey(records, mode.key, refuse) : records
  const groups = groupByFields(keyed, { ordered: isUpsert })
  for (const { columns } of groups) requireColumns(loading, columns)
  return groups
}

function withKey(records: readonly NumberedRow[], key: readonly string[], refuse: Refuse): NumberedRow[] {
  return records.filter((record) => {
    const missing = key.find((column) => !Object.hasOwn(record.row, column) || record.row[column] === null)
    if (missing !== undefined) refuse(record, `has no ${missing}, which is part of the key`)
    return missing === undefined
  })
}

/**
 * Inserts rows in the transaction that is open. If the database refuses them for their data they are tried in halves, down
 * to the rows that are to blame; the others stay inserted.
 */
export async function insertGroup(
  loading: Loading,
  { columns, records }: RowGroup,
  refuse: Refuse,
): Promise<void> {
  const { connection, table, mode } = loading
  const json = JSON.stringify(records.map(({ row }) => row))
  await connection.query('savepoint part')
  try {
    await ask(connection, insertRows({ table, mode, columns, json }))
    await connection.query('release part')
  } catch (error) {
    if (!isDataError(error)) throw error
    await connection.query('rollback to part')
    const [first, second] = records
    if (first && !second) return refuse(first, reasonOf(error))
    const middle = Math.ceil(records.length / 2)
    await insertGroup(loading, { columns, records: records.slice(0, middle) }, refuse)
    await insertGroup(loading, { columns, records: records.slice(middle) }, refuse)
  }
}

/** Data exceptions and violated constraints: the fault of a row, not of the statement. */
export const isDataError = (error: unknown): error is DatabaseError =>
  isDatabaseError(error) && /^2[23]/.test(error.code)

const reasonOf = ({ message, detail }: DatabaseError): string =>
  `is refused by the database: ${message}${detail ? ` (${detail})` : ''}`
