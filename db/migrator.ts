import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { describeRevocations, describeTimeouts } from './queries/logins.ts'
import { FUNCTIONS_ROLE } from './queries/walls.ts'
import type { Query } from './query.ts'

/** What the migrator needs of a connection: `pg`'s Client has it. */
export type MigrationClient = {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

export type Migration = { version: number; name: string; sql: string; checksum: string }

export type MigrationReport = { version: number; applied: string[] }

const FOLDER = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/
/** Any constant will do, as long as every starter of SmartQueue uses the same. */
const LOCK_KEY = 7_209_115_301

const MIGRATIONS_TABLE = `
  create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
  )`

/**
 * Brings the database to the newest version.
 *
 * Each migration runs in a transaction of its own, behind a transaction-scoped advisory lock, and looks again
 * at what is applied once it holds the lock. So two starters take turns, a crash leaves whole migrations only,
 * and a transaction-mode pooler in between does no harm.
 *
 * Privileges on the database and settings of its logins are not part of the schema, and a dump does not
 * include them. Every run restores them.
 */
export const migrate = async (
  client: MigrationClient,
  onApplied: (migration: Migration) => void = () => {},
): Promise<MigrationReport> => {
  const migrations = await readMigrations()
  const applied: string[] = []
  await inLockedTransaction(client, () => client.query(MIGRATIONS_TABLE))
  for (const migration of migrations) {
    const ran = await persist(() => inLockedTransaction(client, () => applyOnce(client, migration)))
    if (!ran) continue
    applied.push(migration.name)
    onApplied(migration)
  }
  for (const description of [describeRevocations(), describeTimeouts(FUNCTIONS_ROLE)]) {
    await inLockedTransaction(client, () => followDescription(client, description))
  }
  return { version: migrations.at(-1)?.version ?? 0, applied }
}

export const readMigrations = async (): Promise<Migration[]> => {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(files.map(readMigration))
}

const readMigration = async (file: string, index: number): Promise<Migration> => {
  const [, number, name] = FILE_NAME.exec(file) ?? []
  if (!number || !name || Number(number) !== index + 1) {
    throw new Error(
      `db/migrations/${file}: expected ${String(index + 1).padStart(4, '0')}_name.sql, without gaps`,
    )
  }
  const sql = await readFile(new URL(file, FOLDER), 'utf8')
  const checksum = createHash('sha256').update(sql.replaceAll('\r\n', '\n')).digest('hex')
  return { version: Number(number), name: `${number}_${name}`, sql, checksum }
}

const applyOnce = async (client: MigrationClient, migration: Migration): Promise<boolean> => {
  const { rows } = await client.query('select checksum from schema_migrations where version = $1', [
    migration.version,
  ])
  const [existing] = rows
  if (existing && existing.checksum !== migration.checksum) {
    throw new Error(
      `Migration ${migration.name} was changed after this database applied it. ` +
        'Restore the file and put the change into a new migration.',
    )
  }
  if (existing) return false
  await client.query(migration.sql)
  await client.query('insert into schema_migrations (version, name, checksum) values ($1, $2, $3)', [
    migration.version,
    migration.name,
    migration.checksum,
  ])
  return true
}

/**
 * Runs the statements that the query describes. Those that the role may not run are skipped; the runtimes
 * then refuse to start.
 */
const followDescription = async (
  client: MigrationClient,
  { text, values }: Query<unknown>,
): Promise<void> => {
  const { rows } = await client.query(text, [...values])
  for (const { statement } of rows) {
    await client.query('savepoint described')
    await client.query(String(statement)).catch(async (error: { code?: string }) => {
      if (error.code !== INSUFFICIENT_PRIVILEGE) throw error
      await client.query('rollback to savepoint described')
    })
  }
}

const INSUFFICIENT_PRIVILEGE = '42501'

const DEADLOCK = '40P01'
const TRIES = 5

/** A queue at work locks tables in another order. Whoever is chosen to give way loses nothing but its try. */
const persist = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      if ((error as { code?: string }).code !== DEADLOCK || tried === TRIES) throw error
    }
  }
}

const inLockedTransaction = async <T>(client: MigrationClient, work: () => Promise<T>): Promise<T> => {
  await client.query('begin')
  try {
    await client.query('select pg_advisory_xact_lock($1)', [LOCK_KEY])
    const result = await work()
    await client.query('commit')
    return result
  } catch (error) {
    // The first error is the one to report, also when the connection is gone and cannot roll back.
    await client.query('rollback').catch(() => {})
    throw error
  }
}
