import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { CREATE_LOADS } from '../../worker-runtime/handlers/etl/load-statements.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { collectSqlTexts, type Sender, type SqlText } from '../support/sql-texts.ts'

/** Texts that cannot be constants, by the name of what makes them. */
const ASSEMBLED = {
  loadBatch: 'names the table and the columns of a user, quoted',
  insertRows: 'names the table and the columns of a user, quoted',
  declareCursor: 'contains a query of a user',
}

/** Statements that Postgres does not prepare. */
const UTILITY = /^\s*(begin|commit|rollback|savepoint|release|set|listen|create|revoke|fetch)\b/

/** Made by the migrator before there is anything to prepare against, or in the database of a user. */
const OWNERS_FILES = [
  'db/migrator.ts',
  'db/queries/schema-version.ts',
  'worker-runtime/handlers/etl/load-statements.ts',
]

let database: TestDatabase
const { texts, outside } = collectSqlTexts()

before(async () => {
  database = await createTestDatabase()
  await database.sql(CREATE_LOADS)
})
after(() => database.drop())

test('every SQL text is a constant', () => {
  const assembled = texts.filter(({ text }) => text === undefined)
  assert.deepEqual(
    assembled.filter(({ name }) => !(name in ASSEMBLED)).map(({ place }) => place),
    [],
  )
  const names = assembled.map(({ name }) => name)
  for (const name of Object.keys(ASSEMBLED)) assert.ok(names.includes(name), `${name} is a constant now`)
})

test('SQL for the database of SmartQueue stands only in db/', () => {
  assert.deepEqual(outside, [])
})

test('Postgres prepares every SQL text, with the rights of whoever sends it', async () => {
  const faults: string[] = []
  const clients = await connectAll()
  for (const one of texts) {
    if (one.text === undefined || UTILITY.test(one.text)) continue
    for (const login of loginsOf(one)) {
      // EXPLAIN also plans the statement and checks its privileges, which PREPARE does not.
      await clients[login]
        .query(`explain (generic_plan) ${one.text}`)
        .catch((error: Error) => faults.push(`${one.place} as ${login}: ${error.message}`))
    }
  }
  await Promise.all(Object.values(clients).map((client) => client.end()))
  assert.deepEqual(faults, [])
  assert.ok(texts.length > 100, `only ${texts.length} texts found`)
})

type Login = Sender | 'both'

/** A text that no runtime imports by name is part of a builder that one of them does. */
const loginsOf = ({ file, senders }: SqlText): Login[] =>
  OWNERS_FILES.includes(file) ? ['owner'] : senders.length > 0 ? senders : ['both']

const connectAll = async (): Promise<Record<Login, pg.Client>> => {
  const connect = async (connectionString: string) => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    return client
  }
  return {
    functions: await connect(asLogin(database.url, 'functions')),
    workers: await connect(asLogin(database.url, 'workers')),
    both: await connect(asLogin(database.url, 'both')),
    owner: await connect(database.url),
  }
}
