import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Query, Run } from '../../db/query.ts'
import { createDatabase, type Database, TYPES } from '../../worker-runtime/database.ts'
import { ensureLogin, type Runtime, withLogin } from '../../worker-runtime/database-login.ts'
import { withClient } from '../../worker-runtime/migrate.ts'

export const TEMPLATE_DATABASE = 'smartqueue_template'

export type TestDatabase = {
  /** As its owner, for whom there is no row-level security. */
  readonly url: string
  /** Product statements, under row-level security: with the rights of the functions and of the workers. */
  readonly run: Run
  /** Any SQL: to seed a state or to look at rows. */
  readonly sql: <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>
  /** It stays until the server goes: to delete hundreds of files slows making the next ones down, on ext4 by a fifth of all CPU. */
  drop(): Promise<void>
}

/** A database of its own for one test file, copied from the migrated template, or empty. */
export const createTestDatabase = async (options: { empty?: boolean } = {}): Promise<TestDatabase> => {
  const serverUrl = process.env.TEST_POSTGRES_URL
  if (!serverUrl) throw new Error('Run the tests with npm test: it starts their Postgres')
  const name = `test_${randomBytes(6).toString('hex')}`
  const template = options.empty ? 'template0' : TEMPLATE_DATABASE
  // A copy has the default privileges again.
  await onServer(
    serverUrl,
    `create database ${name} template ${template}`,
    `revoke temporary on database ${name} from public`,
  )
  const url = databaseUrl(serverUrl, name)
  const pool = new pg.Pool({ connectionString: url, max: 10, options: '-c search_path=public,smartqueue' })
  const asRuntimes = new pg.Pool({ connectionString: asLogin(url, 'both'), max: 10, types: TYPES })
  // Leaving the database cuts connections off.
  for (const one of [pool, asRuntimes]) one.on('error', () => {})
  return {
    url,
    run: async <Row>({ name, text, values }: Query<Row>) =>
      (await asRuntimes.query({ name, text, values: [...values] })).rows as Row[],
    sql: async (text, values) => (await pool.query(text, values)).rows,
    drop: async () => {
      await Promise.all([pool.end(), asRuntimes.end()])
      await onServer(
        serverUrl,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
      )
    },
  }
}

export type TestLogin = Runtime | 'both'

const LOGINS: Record<TestLogin, Runtime[]> = {
  functions: ['functions'],
  workers: ['workers'],
  both: ['functions', 'workers'],
}

const loginOf = (login: TestLogin) => ({ name: `test_${login}`, password: 'test' })

/** Shows every row to the login `both`, which enters no organisation. Definer functions check credentials all the same. */
export const SHOW_ALL_ROWS = `
  do $$
  declare
    v_table regclass;
  begin
    for v_table in select oid from pg_class where relnamespace = 'smartqueue'::regnamespace and relrowsecurity loop
      execute format('create policy of_test on %s to test_both using (true)', v_table);
    end loop;
  end
  $$`

/** One row for each transition of a job, for tests. */
const JOB_EVENTS = `
  create view job_events as
  select g.id, e.n as position, g.org_id, e.job_id, e.state, e.attempt, e.reason, e.at
  from smartqueue.job_event_groups g
  cross join lateral smartqueue.unpack_events(
    g.job_ids, g.states, g.attempts, g.reasons, g.ats, g.at, 0, cardinality(g.job_ids)
  ) e`

/** Logins belong to the server: made once, by whoever has started it. */
export const createLogins = (serverUrl: string): Promise<void> =>
  withClient(serverUrl, async (client) => {
    for (const [login, runtimes] of Object.entries(LOGINS)) {
      for (const runtime of runtimes) await ensureLogin(client, runtime, loginOf(login as TestLogin))
    }
    await client.query(SHOW_ALL_ROWS)
    await client.query(JOB_EVENTS)
    // It also runs statements that only workers use, which may take longer.
    for (const timeout of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) {
      await client.query(`alter role test_both set ${timeout} = 0`)
    }
  })

/** The database as a part of SmartQueue reaches it. */
export const asLogin = (url: string, login: TestLogin): string => withLogin(url, loginOf(login))

const onServer = async (serverUrl: string, ...statements: string[]): Promise<void> => {
  const client = new pg.Client({ connectionString: databaseUrl(serverUrl, 'postgres') })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

const databaseUrl = (serverUrl: string, name: string): string => {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** A session as a worker exchanges jobs in. */
export const connectWorker = (url: string): Database =>
  createDatabase({
    url: asLogin(url, 'workers'),
    applicationName: 'pinned',
    maxConnections: 1,
    onError: () => {},
  })
