import { type JobContext, JobError, type PostgresConnection } from '../../handler-api.ts'
import { ask } from '../sources/ask.ts'
import { isDatabaseError, refuseStatement } from '../sources/postgres-error.ts'
import type { BadRowSample } from './bad-rows.ts'
import type { PostgresLoad } from './load-schema.ts'
import {
  boundWaiting,
  CREATE_LOADS,
  claimLoad,
  deleteOldLoads,
  findColumns,
  findLoads,
  type LoadRow,
  type LoadTable,
  unboundWaiting,
} from './load-statements.ts'
import type { EtlResult, Progress } from './target.ts'

export type OpenLoad = {
  readonly connection: PostgresConnection
  readonly table: LoadTable
  /** Those that can be written. */
  readonly columns: ReadonlySet<string>
  readonly progress: Progress
  readonly result: EtlResult | undefined
}

/**
 * Connects, looks the table up, and takes the load over from earlier attempts. `atomic` is for a load of one transaction.
 * One that is `fresh` begins with the first row, whatever earlier attempts have loaded.
 */
export async function openLoad(
  load: PostgresLoad,
  ctx: JobContext,
  options: { atomic: boolean; fresh: boolean },
): Promise<OpenLoad> {
  const connection = await ctx.postgres(load.connection)
  try {
    const { table, columns } = await findTable(connection, load)
    await ask(connection, boundWaiting())
    await requireLoads(connection)
    await ask(connection, deleteOldLoads())
    const [row] = await ask(
      connection,
      claimLoad({ jobId: ctx.jobId, token: ctx.fencingToken, restart: options.fresh }),
    )
    if (!row) throw superseded()
    await ask(connection, unboundWaiting(options))
    return { connection, table, columns, ...readLoad(row) }
  } catch (error) {
    throw isDatabaseError(error) ? refuseStatement(`Cannot load into ${load.table}`, error) : error
  }
}

async function findTable(
  connection: PostgresConnection,
  load: PostgresLoad,
): Promise<{ table: LoadTable; columns: ReadonlySet<string> }> {
  const found = await ask(connection, findColumns(load.table))
  const [first] = found
  if (!first) {
    throw new JobError(
      'unknown_table',
      `The database "${load.connection}" has no table ${load.table} that its user can see. Names are case-sensitive.`,
      { permanent: true },
    )
  }
  const table = { schema: first.schema, name: first.name }
  const columns = new Set(found.map(({ column }) => column))
  requireColumns({ table, columns }, load.key ?? [])
  return { table, columns }
}

export function requireColumns(
  { table, columns }: Pick<OpenLoad, 'table' | 'columns'>,
  names: readonly string[],
): void {
  const unknown = names.filter((name) => !columns.has(name))
  if (unknown.length === 0) return
  throw new JobError(
    'unknown_column',
    `${table.schema}.${table.name} has no column ${unknown.map((name) => `"${name}"`).join(', ')} that can be written. ` +
      `It has: ${[...columns].join(', ')}. Use rename, keep, drop or map to make the rows fit.`,
    { permanent: true },
  )
}

/** Looked for first: a role that may not create tables can do with one that is there. */
async function requireLoads(connection: PostgresConnection): Promise<void> {
  if (await hasLoads(connection)) return
  try {
    await connection.query(CREATE_LOADS)
  } catch (error) {
    // Two jobs that begin together may both create it, and one is refused.
    if (!isDatabaseError(error)) throw error
    if (await hasLoads(connection)) return
    throw MAY_NOT_CREATE.has(error.code) ? cannotKeepProgress(error.message) : error
  }
}

/** Insufficient privilege, a transaction that is read-only, and no schema to create it in. */
const MAY_NOT_CREATE: ReadonlySet<string> = new Set(['42501', '25006', '3F000'])

const cannotKeepProgress = (reason: string): JobError =>
  new JobError(
    'cannot_keep_progress',
    `SmartQueue keeps what a job has loaded in a table of the database that it loads into, and cannot create it there: ` +
      `${reason}. Run this as a role that may, and grant select, insert, update and delete on it:\n${CREATE_LOADS}`,
    { permanent: true },
  )

async function hasLoads(connection: PostgresConnection): Promise<boolean> {
  const [row] = await ask(connection, findLoads())
  return row?.found === true
}

const readLoad = (row: LoadRow): Pick<OpenLoad, 'progress' | 'result'> => ({
  progress: {
    rows: Number(row.rows),
    digest: row.digest,
    bad: { count: Number(row.bad_rows), samples: row.bad_row_samples as BadRowSample[] },
  },
  result: (row.result as EtlResult | null) ?? undefined,
})

export const superseded = (): JobError =>
  new JobError(
    'load_superseded',
    'A later attempt of this job has taken the load over; this one loads nothing more.',
  )
