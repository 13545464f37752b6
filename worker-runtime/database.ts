import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { isoTime, TIMESTAMPTZ } from '../db/iso-time.ts'
import type { Query, Run } from '../db/query.ts'

export type Database = {
  readonly run: Run
  /** What `work` runs is committed together, or not at all if it throws. */
  transaction<Result>(work: (run: Run) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

const RETRY_PAUSE_MS = 500

/** What commits need not wait for: a crash of the server undoes the last of them. */
export const RELAXED_COMMIT = { synchronous_commit: 'off' } as const

/** A process that stands still in the middle of a transaction must not hold up whoever takes over from it. */
export const SHORT_TRANSACTIONS = { idle_in_transaction_session_timeout: '2000' } as const

/** Times come as text, as from the driver of the functions. */
export const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    type === TIMESTAMPTZ && format !== 'binary' ? isoTime : pg.types.getTypeParser(type, format),
}

export const createDatabase = (options: {
  url: string
  applicationName: string
  maxConnections: number
  settings?: Readonly<Record<string, string>>
  onError: (error: Error) => void
}): Database => {
  const settings = Object.entries(options.settings ?? {})
    .map(([name, value]) => `set ${name} = ${value}`)
    .join('; ')
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    // Three tries fit into a lease. The server gives up first, so that nothing commits after we have.
    query_timeout: 10_000,
    statement_timeout: 9_000,
    // A worker that was idle for a while starts its next job without connecting first.
    idleTimeoutMillis: 0,
    types: TYPES,
    ...(settings && { onConnect: (client: pg.ClientBase) => client.query(settings) }),
  })
  // An idle connection that breaks (a restart of Postgres) is replaced by the pool; unheard it ends the process.
  pool.on('error', options.onError)
  return {
    run: runOn(pool),
    transaction: async (work) => {
      const client = await pool.connect()
      // One that breaks between two statements says so, and unheard that ends the process; the next statement fails.
      const hear = (): void => {}
      client.on('error', hear)
      try {
        await client.query('begin')
        const result = await work(runOn(client))
        await client.query('commit')
        client.release()
        return result
      } catch (error) {
        // What is wrong with the session goes with it, and so does what it has not committed.
        client.release(true)
        throw error
      } finally {
        client.off('error', hear)
      }
    },
    close: () => pool.end(),
  }
}

const runOn =
  (session: pg.Pool | pg.PoolClient): Run =>
  async <Row>({ name, text, values }: Query<Row>): Promise<Row[]> => {
    const result = await session.query({ name, text, values: [...values] })
    return result.rows as Row[]
  }

/** Postgres will not take these values (data, constraint or size), however often they are sent. */
export const isRefused = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? '')

/** The end of the job is recorded already. */
export const isRecorded = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === 'finished_jobs_pkey'

/** Tries again after any other failure, until `ms` have passed. Throws the last error. */
export const retryFor = async <T>(
  ms: number,
  work: () => Promise<T>,
  onError: (error: Error) => void = () => {},
): Promise<T> => {
  const giveUpAt = performance.now() + ms
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (isRefused(error) || performance.now() > giveUpAt) throw error
      onError(error as Error)
      await delay(RETRY_PAUSE_MS)
    }
  }
}
