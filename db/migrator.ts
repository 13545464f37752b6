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

export type Migration = { version: number; name: string; sql: string; checksum: string }

/** A file of functions, by its path below `db/`. */
export type FunctionFile = { path: string; sql: string; checksum: string }

export type MigrationReport = { version: number; applied: string[]; loaded: string[] }

const FOLDER = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/
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
    checksum text not null,
    loaded_at timestamptz not null default now()
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
export const migrate = async (
  client: MigrationClient,
  onApplied: (migration: Migration) => void = () => {},
): Promise<MigrationReport> => {
  const migrations = await readMigrations()
  const applied: string[] = []
  await inLockedTransaction(client, () => prepareSchema(client))
  for (const migration of migrations) {
    const ran = await persist(() => inLockedTransaction(client, () => applyOnce(client, migration)))
    if (!ran) continue
    applied.push(migration.name)
    onApplied(migration)
  }
  const loaded = await loadFunctions(client, await readFunctionFiles())
  for (const description of [describeRevocations(), describeTimeouts(FUNCTIONS_ROLE)]) {
    await inLockedTransaction(client, () => followDescription(client, description))
  }
  return { version: migrations.at(-1)?.version ?? 0, applied, loaded }
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
  return { version: Number(number), name: `${number}_${name}`, ...(await readSql(new URL(file, FOLDER))) }
}

const readSql = async (url: URL): Promise<{ sql: string; checksum: string }> => {
  const sql = (await readFile(url, 'utf8')).replaceAll('\r\n', '\n')
  return { sql, checksum: createHash('sha256').update(sql).digest('hex') }
}

/** Every .sql file below `db/` that is not a migration. */
export const readFunctionFiles = async (): Promise<FunctionFile[]> => {
  const folder = new URL('../', FOLDER)
  const paths = (await readdir(folder, { recursive: true }))
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.sql') && !path.startsWith('migrations/'))
    .sort()
  return Promise.all(paths.map(async (path) => ({ path, ...(await readSql(new URL(path, folder))) })))
}

const prepareSchema = async (client: MigrationClient): Promise<void> => {
  const { text, values } = inspectSchema()
  const [schema] = (await client.query(text, [...values])).rows
  if (schema?.refusal) throw new Error(String(schema.refusal))
  if (!schema?.found) await client.query('create schema smartqueue')
  await client.query(BOOKKEEPING)
}

const applyOnce = async (client: MigrationClient, migration: Migration): Promise<boolean> => {
  const { rows } = await client.query(
    'select checksum from smartqueue.schema_migrations where version = $1',
    [migration.version],
  )
  const [existing] = rows
  if (existing && existing.checksum !== migration.checksum) {
    throw new Error(
      `Migration ${migration.name} was changed after this database applied it. ` +
        'Restore the file and put the change into a new migration.',
    )
  }
  if (existing) return false
  await client.query(SEARCH_PATH)
  await client.query(migration.sql).catch((error) => {
    throw located(`migrations/${migration.name}.sql`, migration.sql, error)
  })
  await client.query(NO_PUBLIC_EXECUTE)
  await client.query(
    'insert into smartqueue.schema_migrations (version, name, checksum) values ($1, $2, $3)',
    [migration.version, migration.name, migration.checksum],
  )
  return true
}

/** Loads the files whose text has changed, and returns their paths. */
export const loadFunctions = (client: MigrationClient, files: FunctionFile[]): Promise<string[]> =>
  persist(() => inLockedTransaction(client, () => loadChanged(client, files)))

const loadChanged = async (client: MigrationClient, files: FunctionFile[]): Promise<string[]> => {
  const { rows } = await client.query('select path, checksum from smartqueue.function_files')
  const known = new Map(rows.map(({ path, checksum }) => [path, checksum]))
  const changed = files.filter(({ path, checksum }) => known.get(path) !== checksum)
  if (changed.length === 0 && known.size === files.length) return []
  await client.query(SEARCH_PATH)
  await createFunctions(client, changed)
  await client.query(NO_PUBLIC_EXECUTE)
  await client.query('delete from smartqueue.function_files where path <> all ($1::text[])', [
    files.map(({ path }) => path),
  ])
  await client.query(
    `insert into smartqueue.function_files (path, checksum)
     select path, checksum
     from unnest($1::text[], $2::text[]) as file (path, checksum)
     on conflict (path) do update
     set checksum = excluded.checksum, loaded_at = now()`,
    [changed.map(({ path }) => path), changed.map(({ checksum }) => checksum)],
  )
  return changed.map(({ path }) => path)
}

/** A SQL function is bound when it is created, so a file that calls a function of a later file is tried again. */
const createFunctions = async (client: MigrationClient, files: FunctionFile[]): Promise<void> => {
  const early: FunctionFile[] = []
  let firstError: unknown
  for (const file of files) {
    await client.query('savepoint loading')
    try {
      await client.query(file.sql)
    } catch (cause) {
      const error = located(file.path, file.sql, cause as PostgresError)
      if (!UNDEFINED.has(error.code ?? '')) throw error
      firstError ??= error
      early.push(file)
      await client.query('rollback to savepoint loading')
    }
  }
  if (early.length === files.length && firstError) throw firstError
  if (early.length > 0) await createFunctions(client, early)
}

type PostgresError = Error & { code?: string | undefined; position?: string; where?: string }

/** The error with its file and line. */
const located = (path: string, sql: string, cause: PostgresError): PostgresError => {
  const { code, position, where } = cause
  const line = position ? `:${sql.slice(0, Number(position)).split('\n').length}` : ''
  const context = !position && where ? ` (${where})` : ''
  const rule = code !== undefined && CHANGED_SIGNATURE.has(code) ? ` ${SIGNATURE_RULE}` : ''
  return Object.assign(new Error(`db/${path}${line}: ${cause.message}.${context}${rule}`, { cause }), {
    code,
  })
}

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
