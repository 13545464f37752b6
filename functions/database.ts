import { NeonDbError, neon, neonConfig } from '@neondatabase/serverless'
import { type Entry, NOT_ENTERED } from '../db/queries/scope.ts'
import type { Query, Run } from '../db/query.ts'
import { isConnectionLoss, isTransient } from '../db/rules/transient-error.ts'
import { DatabaseUnavailable, NotEntered } from './database-errors.ts'

export type Database = {
  /** For what belongs to no organisation. */
  readonly run: Run
  /** Runs each statement in a transaction that begins with these; one round trip all the same. */
  after(...entries: Entry[]): Run
  /** Runs them in one transaction and one round trip, and answers the rows of each. */
  transaction<Rows extends unknown[]>(queries: Queries<Rows>): Promise<{ [N in keyof Rows]: Rows[N][] }>
}

/** A statement for each kind of row. */
export type Queries<Rows extends unknown[]> = { [N in keyof Rows]: Query<Rows[N]> }

const TRIES = 3
/** Longer than any statement of ours should take, shorter than a client waits. */
const TIMEOUT_MS = 15_000

/** Runs statements over Neon's HTTP protocol: one round trip each, no connection held. */
export const createDatabase = (options: { url: string; gateway?: string | undefined }): Database => {
  const { gateway } = options
  if (gateway) neonConfig.fetchEndpoint = () => `http://${gateway}/sql`
  const sql = neon(options.url)

  const runOnce = async <Row>(query: Query<Row>): Promise<Row[]> =>
    (await inTime((options) => sql.query(query.text, [...query.values], options))) as Row[]

  const runTogether = async (queries: readonly Query<unknown>[]): Promise<unknown[][]> => {
    const statements = queries.map(({ text, values }) => sql.query(text, [...values]))
    return (await inTime((options) => sql.transaction(statements, options))) as unknown[][]
  }

  const runAfter = async <Row>(entries: readonly Entry[], query: Query<Row>): Promise<Row[]> =>
    ((await runTogether([...entries, query])).at(-1) ?? []) as Row[]

  return {
    run: (query) => persist(() => runOnce(query)),
    after:
      (...entries) =>
      (query) =>
        persist(() => runAfter(entries, query)),
    transaction: <Rows extends unknown[]>(queries: Queries<Rows>) =>
      persist(() => runTogether(queries)) as Promise<{ [N in keyof Rows]: Rows[N][] }>,
  }
}

/** A timer that is taken back: one of `AbortSignal.timeout` would keep a Durable Object from hibernating until it ends. */
const inTime = async <T>(
  send: (options: { fetchOptions: { signal: AbortSignal } }) => Promise<T>,
): Promise<T> => {
  const controller = new AbortController()
  const timer = setTimeout(
    () => controller.abort(new DOMException('Postgres did not answer in time.', 'TimeoutError')),
    TIMEOUT_MS,
  )
  try {
    return await send({ fetchOptions: { signal: controller.signal } })
  } finally {
    clearTimeout(timer)
  }
}

const isNotEntered = (code: string | undefined): code is keyof typeof NOT_ENTERED =>
  code !== undefined && Object.hasOwn(NOT_ENTERED, code)

/** Tries again what Postgres has rolled back for a passing reason. */
const persist = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof NeonDbError)) throw error
      if (isNotEntered(error.code)) throw new NotEntered(error.code)
      if (isTransient(error.code) && tried < TRIES) continue
      // Without a SQLSTATE nothing of Postgres answered at all.
      if (!error.code || isTransient(error.code) || isConnectionLoss(error.code)) {
        throw new DatabaseUnavailable(error)
      }
      throw error
    }
  }
}
