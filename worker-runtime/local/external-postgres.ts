import { ping } from '../../db/queries/notifications.ts'
import { UsageError } from '../command.ts'
import { describeError } from '../describe-error.ts'
import { withClient } from '../migrate.ts'

/** The Postgres of DATABASE_URL: found to answer before anything is built on it. */
export const reachPostgres = async (url: string): Promise<{ url: string; detail: string }> => {
  const place = `at ${hostOf(url)} (DATABASE_URL)`
  try {
    await withClient(url, (client) => client.query(ping().text))
    return { url, detail: place }
  } catch (error) {
    throw new UsageError(`PostgreSQL ${place} cannot be used: ${describeError(error)}.`)
  }
}

/** Never the whole URL: it may hold a password. */
const hostOf = (url: string): string => {
  try {
    return new URL(url).host || 'a local socket'
  } catch {
    return 'a local socket'
  }
}
