import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { loadFunctions, readFunctionFiles, readMigrations, type SqlFile } from '../../db/migrator.ts'
import { SCHEMA_VERSION } from '../../db/queries/schema-version.ts'
import { migrateDatabase, withClient } from '../../worker-runtime/migrate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const databases: TestDatabase[] = []
const emptyDatabase = async (): Promise<TestDatabase> => {
  const database = await createTestDatabase({ empty: true })
  databases.push(database)
  return database
}
after(() => Promise.all(databases.map((database) => database.drop())))

test('two starters at the same time apply each migration once', async () => {
  const database = await emptyDatabase()
  const reports = await Promise.all(Array.from({ length: 4 }, () => migrateDatabase(database.url)))
  const names = (await readMigrations()).map(({ name }) => name)
  assert.deepEqual(reports.flatMap(({ applied }) => applied).sort(), names)
  const rows = await database.sql('select name from smartqueue.schema_migrations order by version')
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  )
})

test('a second run applies nothing', async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  assert.deepEqual(await migrateDatabase(database.url), {
    version: SCHEMA_VERSION,
    applied: [],
    loaded: [],
  })
})

test('a migration that was edited after it was applied is refused by name', async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  await database.sql("update smartqueue.schema_migrations set checksum = 'other' where version = 1")
  await assert.rejects(migrateDatabase(database.url), /0001_scope was changed after this database applied it/)
})

test('the code asks for the newest migration', async () => {
  assert.equal((await readMigrations()).at(-1)?.version, SCHEMA_VERSION)
})

test('every function file is loaded, and nobody but the granted roles may execute a function', async () => {
  const database = await emptyDatabase()
  const { loaded } = await migrateDatabase(database.url)
  assert.deepEqual(
    loaded,
    (await readFunctionFiles()).map(({ path }) => path),
  )
  assert.deepEqual(
    await database.sql(`
      select p.oid::regprocedure::text as name
      from pg_proc p
      cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      where p.pronamespace = 'smartqueue'::regnamespace
        and a.grantee = 0`),
    [],
  )
})

const fileOf = (path: string, sql: string): SqlFile => ({ path, sql, checksum: sql })
const one = (answer: string): SqlFile =>
  fileOf(
    'one.sql',
    `create or replace function one() returns ${answer}; grant execute on function one to smartqueue_workers`,
  )
const two = fileOf('a-two.sql', 'create or replace function two() returns integer return 2 * one()')

/** A database in which `files` are the only function files. */
const loader = async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  return {
    load: (...files: SqlFile[]) => withClient(database.url, (client) => loadFunctions(client, files)),
    answer: async () => (await database.sql('select smartqueue.two() as answer'))[0]?.answer,
  }
}

test('a function file is loaded again when its text has changed', async () => {
  const { load, answer } = await loader()
  assert.deepEqual(await load(two, one('integer return 1')), ['a-two.sql', 'one.sql'])
  assert.equal(await answer(), 2)
  assert.deepEqual(await load(two, one('integer return 1')), [])
  assert.deepEqual(await load(two, one('integer return 21')), ['one.sql'])
  assert.equal(await answer(), 42)
})

test('a file that does not compile is named with its line, and all functions stay as they were', async () => {
  const { load, answer } = await loader()
  await load(two, one('integer return 1'))
  const broken = fileOf(
    'z/broken.sql',
    'create or replace function broken() returns integer language plpgsql as $$\nbegin\n  retrun 1;\nend\n$$',
  )
  await assert.rejects(load(two, one('integer return 21'), broken), {
    message: 'db/z/broken.sql:3: syntax error at or near "retrun".',
  })
  const unbound = fileOf(
    'z/unbound.sql',
    'create or replace function unbound() returns integer\nreturn missing()',
  )
  await assert.rejects(load(two, one('integer return 21'), unbound), {
    message: 'db/z/unbound.sql:2: function missing() does not exist.',
  })
  assert.equal(await answer(), 2)
})

test('a changed signature is refused with the rule that it needs a new name', async () => {
  const { load, answer } = await loader()
  await load(two, one('integer return 1'))
  const refusal = { message: /^db\/one\.sql.*the previous release still calls the old one\.$/ }
  await assert.rejects(load(two, one(`text return 'one'`)), refusal)
  const overloaded = { ...one('integer return 1'), checksum: 'other' }
  overloaded.sql = overloaded.sql.replace('one()', 'one(p_factor integer)')
  await assert.rejects(load(two, overloaded), refusal)
  assert.equal(await answer(), 2)
})

test('a database of an unreleased version is refused with what to do', async () => {
  const database = await emptyDatabase()
  await database.sql(`
    create table schema_migrations (version integer primary key, name text, checksum text, applied_at timestamptz);
    insert into schema_migrations (version, name) values (2, '0002_jobs');
    create table job_types (type text primary key, payload_schema jsonb)`)
  await assert.rejects(migrateDatabase(database.url), {
    message:
      'This database was created by an unreleased version of SmartQueue and cannot be upgraded. ' +
      'Start with an empty database; locally, delete the folder .smartqueue.',
  })
})
