import { NeonDbError, neon, neonConfig } from '@neondatabase/serverless'
import type { Query, Run } from '../db/query.ts'
import { isConnectionLoss, isTransient } from '../db/rules/transient-error.ts'

/** Postgres did not answer. Whether the statement committed is not known. */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super('The database did not answer.', { cause })
    this.name = 'DatabaseUnavailable'
  }
}

const TRIES = 3
/** Longer than any statement of ours should take, shorter than a client waits. */
const TIMEOUT_MS = 15_000

/** Runs statements over Neon's HTTP protocol: one round trip each, no connection held. */
export const createDatabase = (options: { url: string; gateway?: string | undefined }): Run => {
  const { gateway } = options
  if (gateway) neonConfig.fetchEndpoint = () => `http://${gateway}/sql`
  const sql = neon(options.url)

  const runOnce = async <Row>(query: Query<Row>): Promise<Row[]> =>
    (await sql.query(query.text, [...query.values], {
      fetchOptions: { signal: AbortSignal.timeout(TIMEOUT_MS) },
    })) as Row[]

  return async (query) => {
    for (let tried = 1; ; tried++) {
      try {
        return await runOnce(query)
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
}
