import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { describeLogin } from '../db/queries/logins.ts'
import { FUNCTIONS_ROLE, WORKERS_ROLE } from '../db/queries/walls.ts'
import { UsageError } from './command.ts'

/** Who connects to the database. Neither can see past row-level security. */
export const RUNTIMES = { functions: FUNCTIONS_ROLE, workers: WORKERS_ROLE } as const

export type Runtime = keyof typeof RUNTIMES

const INSUFFICIENT_PRIVILEGE = '42501'

/** Makes a login for a runtime, or gives an existing one a new password. */
export const ensureLogin = async (
  client: pg.Client,
  runtime: Runtime,
  login: { name: string; password: string },
): Promise<void> => {
  const query = describeLogin({ ...login, group: RUNTIMES[runtime] })
  try {
    const { rows } = await client.query(query.text, [...query.values])
    await client.query(rows[0].statement)
  } catch (error) {
    if ((error as { code?: string }).code !== INSUFFICIENT_PRIVILEGE) throw error
    throw new UsageError(
      'The role of DATABASE_URL may not make logins. Give it CREATEROLE, or use the one that has migrated the database.',
    )
  }
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
