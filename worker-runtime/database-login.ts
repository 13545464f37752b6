import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { describeLogin, describeTimeouts, type Statement } from '../db/queries/logins.ts'
import { FUNCTIONS_ROLE, WORKERS_ROLE } from '../db/queries/row-level-security.ts'
import type { Query } from '../db/query.ts'
import { UsageError } from './command.ts'

/** Who connects to the database. Neither can see past row-level security. */
export const RUNTIMES = { functions: FUNCTIONS_ROLE, workers: WORKERS_ROLE } as const

export type Runtime = keyof typeof RUNTIMES

const INSUFFICIENT_PRIVILEGE = '42501'

/**
 * Creates a login for a runtime, or gives an existing one a new password. Also sets the timeouts of a
 * functions login.
 */
export const ensureLogin = async (
  client: pg.Client,
  runtime: Runtime,
  login: { name: string; password: string },
): Promise<void> => {
  try {
    await followDescription(client, describeLogin({ ...login, group: RUNTIMES[runtime] }))
    if (runtime === 'functions') await followDescription(client, describeTimeouts(FUNCTIONS_ROLE, login.name))
  } catch (error) {
    if ((error as { code?: string }).code !== INSUFFICIENT_PRIVILEGE) throw error
    throw new UsageError(
      'The role of DATABASE_URL may not make logins. Give it CREATEROLE, or use the one that has migrated the database.',
    )
  }
}

/** Runs the statements that the query describes. */
export const followDescription = async (
  client: pg.Client,
  { text, values }: Query<Statement>,
): Promise<void> => {
  const { rows } = await client.query<Statement>(text, [...values])
  for (const { statement } of rows) await client.query(statement)
}

/** No quotes, no signs that mean something in a URL. */
export const newPassword = (): string => randomBytes(24).toString('base64url')

/** The same database with another login. */
export const withLogin = (url: string, { name, password }: { name: string; password: string }): string => {
  const changed = new URL(url)
  changed.username = encodeURIComponent(name)
  changed.password = encodeURIComponent(password)
  return changed.href
}
