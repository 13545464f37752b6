import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { readMigrations } from '../../db/migrator.ts'
import { SCHEMA_VERSION } from '../../db/queries/schema-version.ts'
import { migrateDatabase } from '../../worker-runtime/migrate.ts'
import { describeSchema } from '../support/catalog.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const databases: TestDatabase[] = []
const emptyDatabase = async (): Promise<TestDatabase> => {
  const database = await createTestDatabase({ empty: true })
  databases.push(database)
  return database
}
after(() => Promise.all(databases.map((database) => database.drop())))

test('schema.sql is what the migrations make', async () => {
  const [migrated, written] = await Promise.all([emptyDatabase(), emptyDatabase()])
  await migrateDatabase(migrated.url)
  await written.sql(await readFile(new URL('../../db/schema.sql', import.meta.url), 'utf8'))
  const expected = await describeSchema(migrated)
  assert.ok(expected.length > 50, 'the catalog was read')
  assert.deepEqual(await describeSchema(written), expected)
})

test('two starters at the same time apply each migration once', async () => {
  const database = await emptyDatabase()
  const reports = await Promise.all(Array.from({ length: 4 }, () => migrateDatabase(database.url)))
  const names = (await readMigrations()).map(({ name }) => name)
  assert.deepEqual(reports.flatMap(({ applied }) => applied).sort(), names)
  const rows = await database.sql('select name from schema_migrations order by version')
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  )
})

test('a second run applies nothing', async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  assert.deepEqual(await migrateDatabase(database.url), { version: SCHEMA_VERSION, applied: [] })
})

test('a migration that was edited after it was applied is refused by name', async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  await database.sql("update schema_migrations set checksum = 'other' where version = 1")
  await assert.rejects(
    migrateDatabase(database.url),
    /0001_accounts was changed after this database applied it/,
  )
})

test('the code asks for the newest migration', async () => {
  assert.equal((await readMigrations()).at(-1)?.version, SCHEMA_VERSION)
})
