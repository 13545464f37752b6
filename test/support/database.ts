import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Query, Run } from '../../db/query.ts'
import { createDatabase, type Database, PINNED_PLAN } from '../../worker-runtime/database.ts'

export const TEMPLATE_DATABASE = 'smartqueue_template'

export type TestDatabase = {
  readonly url: string
  /** Product statements, as a worker runs them. */
  readonly run: Run
  /** Any SQL: to seed a state or to look at rows. */
  readonly sql: <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>
  drop(): Promise<void>
}

/** A database of its own for one test file, copied from the migrated template, or empty. */
export const createTestDatabase = async (options: { empty?: boolean } = {}): Promise<TestDatabase> => {
  const serverUrl = process.env.TEST_POSTGRES_URL
  if (!serverUrl) throw new Error('Run the tests with npm test: it starts their Postgres')
  const name = `test_${randomBytes(6).toString('hex')}`
  const template = options.empty ? 'template0' : TEMPLATE_DATABASE
  await onServer(serverUrl, `create database ${name} template ${template}`)
  const url = databaseUrl(serverUrl, name)
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  // Dropping the database cuts connections off.
  pool.on('error', () => {})
  return {
    url,
    run: async <Row>({ name, text, values }: Query<Row>) =>
      (await pool.query({ name, text, values: [...values] })).rows as Row[],
    sql: async (text, values) => (await pool.query(text, values)).rows,
    drop: async () => {
      await pool.end()
      await onServer(serverUrl, `drop database ${name} with (force)`)
    },
  }
}

const onServer = async (serverUrl: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: databaseUrl(serverUrl, 'postgres') })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

const databaseUrl = (serverUrl: string, name: string): string => {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** A session with the plans of a worker that exchanges jobs. */
export const connectPinned = (url: string): Database =>
  createDatabase({
    url,
    applicationName: 'pinned',
    maxConnections: 1,
    settings: PINNED_PLAN,
    onError: () => {},
  })
