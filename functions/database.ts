import { NeonDbError, neon, neonConfig, types } from '@neondatabase/serverless'
import { isoTime, TIMESTAMPTZ } from '../db/iso-time.ts'
import { type Entry, NOT_ENTERED } from '../db/queries/scope.ts'
import type { Query, Run } from '../db/query.ts'
import { longestTryMs, MAX_STATEMENTS, PATIENCE_MS } from '../db/rules/timeouts.ts'
import { DatabaseUnavailable, NotEntered } from './database-errors.ts'
import { DISK_FULL, isConnectionLoss, isOvertaken, isTransient, reasonOfRollback } from './transient-error.ts'

export type Database = {
  /** For what belongs to no organisation. */
  readonly run: Run
  /**
   * Runs each statement in a transaction that begins with these entries, in one round trip. With a single entry, a query that
   * accepts its proof is sent alone.
   */
  after(...entries: Entry[]): Run
  /** Runs them in one transaction and one round trip, and answers the rows of each. */
  transaction<Rows extends unknown[]>(queries: Queries<Rows>): Promise<{ [N in keyof Rows]: Rows[N][] }>
  /** Whether a write by this isolate failed recently because the database's disk was full. */
  wasDiskFull(): boolean
}

/** A statement for each kind of row. */
export type Queries<Rows extends unknown[]> = { [N in keyof Rows]: Query<Rows[N]> }

const TRIES = 3
/** How long a full disk is remembered. */
const DISK_FULL_MS = 15_000

/** Runs statements over Neon's HTTP protocol: one round trip each, no connection held. */
export const createDatabase = (options: { url: string; gateway?: string | undefined }): Database => {
  const { gateway } = options
  if (gateway) neonConfig.fetchEndpoint = () => `http://${gateway}/sql`
  const sql = neon(options.url)

  let diskFullAt = Number.NEGATIVE_INFINITY

  const noteDiskFull = (error: unknown): void => {
    if (error instanceof NeonDbError && error.code === DISK_FULL) diskFullAt = Date.now()
  }

  const runOnce = <Row>(query: Query<Row>): Promise<Row[]> =>
    persist(1, noteDiskFull, (options) =>
      sql.query(query.text, [...query.values], { ...options, types: TYPES }),
    ) as Promise<Row[]>

  const runTogether = async (queries: readonly Query<unknown>[]): Promise<unknown[][]> => {
    if (queries.length > MAX_STATEMENTS) {
      throw new Error(`A transaction of ${queries.length} statements may outlast PATIENCE_MS`)
    }
    const statements = () => queries.map(({ text, values }) => sql.query(text, [...values], { types: TYPES }))
    return persist(queries.length, noteDiskFull, (options) =>
      sql.transaction(statements(), options),
    ) as Promise<unknown[][]>
  }

  return {
    run: runOnce,
    after:
      (...entries) =>
      async <Row>(query: Query<Row>) => {
        const proof = entries.length === 1 ? entries[0]?.proof : undefined
        if (query.takesProof && proof) return runOnce({ ...query, values: query.values.with(-1, proof) })
        return ((await runTogether([...entries, query])).at(-1) ?? []) as Row[]
      },
    transaction: <Rows extends unknown[]>(queries: Queries<Rows>) =>
      runTogether(queries) as Promise<{ [N in keyof Rows]: Rows[N][] }>,
    wasDiskFull: () => Date.now() - diskFullAt < DISK_FULL_MS,
  }
}

/** Times come as text, as from the driver of the workers. */
const TYPES = {
  getTypeParser: (type: number) => (type === TIMESTAMPTZ ? isoTime : types.getTypeParser(type)),
}

type Send<T> = (options: { fetchOptions: { signal: AbortSignal } }) => Promise<T>

/**
 * Sends a transaction, and retries it if Postgres rolled it back for a reason that may be gone by then and there is time for
 * another full try. The timer is cleared: `AbortSignal.timeout` would keep a Durable Object from hibernating until it fires.
 */
const persist = async <T>(
  statements: number,
  onError: (error: unknown) => void,
  send: Send<T>,
): Promise<T> => {
  const controller = new AbortController()
  const lastStart = Date.now() + PATIENCE_MS - longestTryMs(statements)
  const timeUp = () => controller.abort(new DOMException('Postgres did not answer in time.', 'TimeoutError'))
  const timer = setTimeout(timeUp, PATIENCE_MS)
  try {
    for (let tried = 1; ; tried++) {
      try {
        return await send({ fetchOptions: { signal: controller.signal } })
      } catch (error) {
        onError(error)
        if (tried === TRIES || !mayRepeat(error, Date.now() <= lastStart)) throw meaningOf(error)
      }
    }
  } finally {
    clearTimeout(timer)
  }
}

/** Whoever was overtaken is refused at once, so that there is always time for it. */
const mayRepeat = (error: unknown, hasTime: boolean): boolean =>
  error instanceof NeonDbError && (isOvertaken(error.code) || (hasTime && isTransient(error.code)))

const isNotEntered = (code: string | undefined): code is keyof typeof NOT_ENTERED =>
  code !== undefined && Object.hasOwn(NOT_ENTERED, code)

/** What an error of the driver means to the functions. */
const meaningOf = (error: unknown): unknown => {
  if (!(error instanceof NeonDbError)) return error
  const { code } = error
  if (isNotEntered(code)) return new NotEntered(code)
  const reason = reasonOfRollback(code)
  if (reason) return new DatabaseUnavailable(reason, { rolledBack: true, cause: error })
  // Without a SQLSTATE, Postgres did not respond at all.
  return !code || isConnectionLoss(code)
    ? new DatabaseUnavailable('The database did not answer.', { rolledBack: false, cause: error })
    : error
}
