import { NeonDbError, neon, neonConfig } from '@neondatabase/serverless'
import type { Entry } from '../db/queries/scope.ts'
import type { Query, Run } from '../db/query.ts'
import { isConnectionLoss, isTransient } from '../db/rules/transient-error.ts'

/** Postgres did not answer. Whether the statement committed is not known. */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super('The database did not answer.', { cause })
    this.name = 'DatabaseUnavailable'
  }
}

/** The database did not let the transaction in: nothing was seen, and nothing done. */
export class NotEntered extends Error {
  readonly entry: Entry['entry']

  constructor(entry: Entry['entry']) {
    super(`The transaction was not let in: ${entry}`)
    this.name = 'NotEntered'
    this.entry = entry
  }
}

export type Database = {
  /** For what belongs to no organisation. */
  readonly run: Run
  /** Runs statements each in a transaction that enters first; one round trip all the same. */
  entering(...entries: Query<Entry>[]): Run
  /** The same, and whoever is not let in gets no error: their rows are not there. */
  trying(...entries: Query<Entry>[]): Run
}

const TRIES = 3
/** Longer than any statement of ours should take, shorter than a client waits. */
const TIMEOUT_MS = 15_000

/** Runs statements over Neon's HTTP protocol: one round trip each, no connection held. */
export const createDatabase = (options: { url: string; gateway?: string | undefined }): Database => {
  const { gateway } = options
  if (gateway) neonConfig.fetchEndpoint = () => `http://${gateway}/sql`
  const sql = neon(options.url)
  const fetchOptions = () => ({ fetchOptions: { signal: AbortSignal.timeout(TIMEOUT_MS) } })

  const runOnce = async <Row>(query: Query<Row>): Promise<Row[]> =>
    (await sql.query(query.text, [...query.values], fetchOptions())) as Row[]

  const runAfter = async <Row>(
    entries: readonly Query<Entry>[],
    query: Query<Row>,
  ): Promise<{ entry: Entry['entry']; rows: Row[] }> => {
    const statements = [...entries, query].map(({ text, values }) => sql.query(text, [...values]))
    const results = (await sql.transaction(statements, fetchOptions())) as unknown[][]
    const refused = entries.map((_, i) => (results[i] as Entry[])[0]?.entry).find((it) => it !== 'entered')
    return { entry: refused ?? 'entered', rows: (results.at(-1) ?? []) as Row[] }
  }

  return {
    run: (query) => persist(() => runOnce(query)),
    entering:
      (...entries) =>
      async (query) => {
        const { entry, rows } = await persist(() => runAfter(entries, query))
        if (entry !== 'entered') throw new NotEntered(entry)
        return rows
      },
    trying:
      (...entries) =>
      async (query) =>
        (await persist(() => runAfter(entries, query))).rows,
  }
}

/** Tries again what Postgres has rolled back for a passing reason. */
const persist = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof NeonDbError)) throw error
      if (isTransient(error.code) && tried < TRIES) continue
      // Without a SQLSTATE nothing of Postgres answered at all.
      if (!error.code || isTransient(error.code) || isConnectionLoss(error.code)) {
        throw new DatabaseUnavailable(error)
      }
      throw error
    }
  }
}
