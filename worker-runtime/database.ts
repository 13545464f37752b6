import pg from 'pg'
import type { Query, Run } from '../db/query.ts'
import { isConnectionLoss, isTransient } from '../db/rules/transient-error.ts'

export type Database = {
  readonly run: Run
  close(): Promise<void>
}

export const createDatabase = (options: {
  url: string
  applicationName: string
  maxConnections: number
  onError: (error: Error) => void
}): Database => {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    // A statement that hangs longer than a lease lives can only do harm.
    query_timeout: 30_000,
  })
  // An idle connection that breaks (a restart of Postgres) is replaced by the pool; unheard it ends the process.
  pool.on('error', options.onError)
  return {
    run: async <Row>(query: Query<Row>): Promise<Row[]> => {
      const result = await pool.query({ name: query.name, text: query.text, values: [...query.values] })
      return result.rows as Row[]
    },
    close: () => pool.end(),
  }
}

/** Postgres answered, and no second try will change the answer. */
export const isRefused = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !isTransient(error.code) && !isConnectionLoss(error.code)
