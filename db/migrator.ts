import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { describeRevocations, describeTimeouts } from './queries/logins.ts'
import { FUNCTIONS_ROLE } from './queries/row-level-security.ts'
import { inspectSchema } from './queries/schema-version.ts'
import type { Query } from './query.ts'

/** What the migrator needs of a connection: `pg`'s Client has it. */
export type MigrationClient = {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

/** A file with its path below `db/`. */
export type SqlFile = { path: string; sql: string; checksum: string }

type Migration = SqlFile & { version: number; name: string }

export type MigrationReport = { version: number; applied: string[]; loaded: string[] }

const FOLDER = new URL('.', import.meta.url)
const MIGRATION_NAME = /^migrations\/((\d{4})_[a-z0-9_]+)\.sql$/
/** Any constant will do, as long as every starter of SmartQueue uses the same. */
const LOCK_KEY = 7_209_115_301

const BOOKKEEPING = `
  create table if not exists smartqueue.schema_migrations (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
  );
  create table if not exists smartqueue.function_files (
    path text primary key,
    checksum text not null
  )`

/** Temporary objects come last, and nothing of the application that shares the database is found. */
const SEARCH_PATH = 'set local search_path = smartqueue, pg_catalog, pg_temp'
const NO_PUBLIC_EXECUTE = 'revoke execute on all routines in schema smartqueue from public'

/**
 * Brings the schema `smartqueue` to the newest version: first the tables, then the functions.
 *
 * Each migration runs in a transaction of its own, behind a transaction-scoped advisory lock, and looks again
 * at what is applied once it holds the lock. So two starters take turns, a crash leaves whole migrations only,
 * and a transaction-mode pooler in between does no harm.
 *
 * Every file with a new text is then loaded with `create or replace`, all in one transaction. Pods of the
 * previous release keep calling functions during a rollout. So a changed signature is a new name, and a
 * migration drops a function only when neither this release nor the previous one calls it.
 *
 * Privileges on the database and settings of its logins are not part of the schema, and a dump does not
 * include them. Every run restores them.
 */
export const migrate = async (client: MigrationClient): Promise<MigrationReport> => {
  const migrations = await readMigrations()
  const applied: string[] = []
  await inTurn(client, () => prepareSchema(client))
  for (const migration of migrations) {
    if (await inTurn(client, () => applyOnce(client, migration))) applied.push(migration.name)
  }
  const loaded = await loadFunctions(client, await readFunctionFiles())
  for (const description of [describeRevocations(), describeTimeouts(FUNCTIONS_ROLE)]) {
    await inTurn(client, () => followDescription(client, description))
  }
  return { version: migrations.length, applied, loaded }
}

export const readMigrations = async (): Promise<Migration[]> => {
  const files = await readFiles((path) => path.startsWith('migrations/'))
  return files.map((file, index) => {
    const [, name, version] = MIGRATION_NAME.exec(file.path) ?? []
    if (!name || Number(version) !== index + 1) {
      throw new Error(
        `db/${file.path}: expected ${String(index + 1).padStart(4, '0')}_name.sql, without gaps`,
      )
    }
    return { ...file, name, version: index + 1 }
  })
}

export const readFunctionFiles = (): Promise<SqlFile[]> =>
  readFiles((path) => !path.startsWith('migrations/'))

const readFiles = async (isWanted: (path: string) => boolean): Promise<SqlFile[]> => {
  const paths = (await readdir(FOLDER, { recursive: true })).map((path) => path.replaceAll('\\', '/'))
  const wanted = paths.filter((path) => path.endsWith('.sql') && isWanted(path)).sort()
  return Promise.all(wanted.map(readSql))
}

const readSql = async (path: string): Promise<SqlFile> => {
  const sql = (await readFile(new URL(path, FOLDER), 'utf8')).replaceAll('\r\n', '\n')
  return { path, sql, checksum: createHash('sha256').update(sql).digest('hex') }
}

const prepareSchema = async (client: MigrationClient): Promise<void> => {
  const { text, values } = inspectSchema()
  const [schema] = (await client.query(text, [...values])).rows
  if (schema?.refusal) throw new Error(String(schema.refusal))
  if (!schema?.found) await client.query('create schema smartqueue')
  await client.query(BOOKKEEPING)
}

const applyOnce = async (client: MigrationClient, migration: Migration): Promise<boolean> => {
  const { version, name, checksum } = migration
  const { rows } = await client.query(
    'select checksum from smartqueue.schema_migrations where version = $1',
    [version],
  )
  const [existing] = rows
  if (existing && existing.checksum !== checksum) {
    throw new Error(
      `Migration ${name} was changed after this database applied it. ` +
        'Restore the file and put the change into a new migration.',
    )
  }
  if (existing) return false
  await client.query(SEARCH_PATH)
  await runFile(client, migration)
  await client.query(NO_PUBLIC_EXECUTE)
  await client.query(
    'insert into smartqueue.schema_migrations (version, name, checksum) values ($1, $2, $3)',
    [version, name, checksum],
  )
  return true
}

/** Loads the files whose text has changed, and returns their paths. */
export const loadFunctions = (client: MigrationClient, files: SqlFile[]): Promise<string[]> =>
  inTurn(client, async () => {
    const { rows } = await client.query('select path, checksum from smartqueue.function_files')
    const known = new Map(rows.map(({ path, checksum }) => [path, checksum]))
    const changed = files.filter(({ path, checksum }) => known.get(path) !== checksum)
    if (changed.length === 0 && known.size === files.length) return []
    await client.query(SEARCH_PATH)
    await createFunctions(client, changed)
    await client.query(NO_PUBLIC_EXECUTE)
    await client.query('delete from smartqueue.function_files')
    await client.query(
      `insert into smartqueue.function_files (path, checksum)
       select path, checksum
       from unnest($1::text[], $2::text[]) as file (path, checksum)`,
      [files.map(({ path }) => path), files.map(({ checksum }) => checksum)],
    )
    return changed.map(({ path }) => path)
  })

/** A SQL function is bound when it is created, so a file that calls a function of a later file is tried again. */
const createFunctions = async (client: MigrationClient, files: SqlFile[]): Promise<void> => {
  const early: SqlFile[] = []
  let firstError: unknown
  for (const file of files) {
    await client.query('savepoint loading')
    try {
      await runFile(client, file)
    } catch (error) {
      if (!UNDEFINED.has(codeOf(error) ?? '')) throw error
      firstError ??= error
      early.push(file)
      await client.query('rollback to savepoint loading')
    }
  }
  if (early.length === files.length && firstError) throw firstError
  if (early.length > 0) await createFunctions(client, early)
}

/** An error names the file and its line. */
const runFile = async (client: MigrationClient, { path, sql }: SqlFile): Promise<void> => {
  try {
    await client.query(sql)
  } catch (cause) {
    const { code, message, position, where } = cause as PostgresError
    const line = position ? `:${sql.slice(0, Number(position)).split('\n').length}` : ''
    const context = !position && where ? ` (${where})` : ''
    const rule = code !== undefined && CHANGED_SIGNATURE.has(code) ? ` ${SIGNATURE_RULE}` : ''
    throw Object.assign(new Error(`db/${path}${line}: ${message}.${context}${rule}`, { cause }), { code })
  }
}

type PostgresError = Error & { code?: string; position?: string; where?: string }

const codeOf = (error: unknown): string | undefined => (error as PostgresError).code

/** undefined_function, undefined_object and undefined_table */
const UNDEFINED: ReadonlySet<string> = new Set(['42883', '42704', '42P01'])
/** invalid_function_definition, and ambiguous_function where a grant names a function that now exists twice. */
const CHANGED_SIGNATURE: ReadonlySet<string> = new Set(['42P13', '42725'])
const SIGNATURE_RULE =
  'A function with other parameters or another return type needs a new name: ' +
  'the previous release still calls the old one.'

/** Runs the described statements, except those that the role may not run: the runtimes then refuse to start. */
const followDescription = async (
  client: MigrationClient,
  { text, values }: Query<unknown>,
): Promise<void> => {
  const { rows } = await client.query(text, [...values])
  for (const { statement } of rows) {
    await client.query('savepoint described')
    await client.query(String(statement)).catch(async (error) => {
      if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error
      await client.query('rollback to savepoint described')
    })
  }
}

const INSUFFICIENT_PRIVILEGE = '42501'
const DEADLOCK = '40P01'
const TRIES = 5

/**
 * Runs a transaction while no other starter runs one. It is tried again after a deadlock: a queue at work locks tables
 * in another order.
 */
const inTurn = async <T>(client: MigrationClient, work: () => Promise<T>): Promise<T> => {
  for (let tried = 1; ; tried++) {
    await client.query('begin')
    try {
      await client.query('select pg_advisory_xact_lock($1)', [LOCK_KEY])
      const result = await work()
      await client.query('commit')
      return result
    } catch (error) {
      // The first error is the one to report, also when the connection is gone and cannot roll back.
      await client.query('rollback').catch(() => {})
      if (codeOf(error) !== DEADLOCK || tried === TRIES) throw error
    }
  }
}
