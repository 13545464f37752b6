import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { takeTurns } from '../../db/queries/scope.ts'
import {
  type DeliveryRecord,
  journalRejection,
  REJECTIONS_PER_MINUTE,
} from '../../db/queries/webhook-journal.ts'
import type { Query } from '../../db/query.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedTenant, type Tenant } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let tenant: Tenant
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())

const makeSource = async (): Promise<string> => {
  const id = uuidV7()
  await database.sql(
    `insert into webhook_sources (org_id, id, name, scheme, secret, template) values ($1, $2, 'n', 'hmac', 'x', '{}')`,
    [tenant.orgId, id],
  )
  return id
}

const rejectionOf = (sourceId: string): DeliveryRecord => ({
  orgId: tenant.orgId,
  id: uuidV7(),
  sourceId,
  eventId: null,
  eventType: null,
  replayOf: null,
  headers: '{}',
  body: null,
})

const withClients = async (work: (first: pg.Client, second: pg.Client) => Promise<void>): Promise<void> => {
  const clients = [new pg.Client(database.url), new pg.Client(database.url)] as const
  try {
    await Promise.all(clients.map((client) => client.connect()))
    await work(...clients)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

test('of two rejections at the same time the second counts the first', () =>
  withClients(async (first, second) => {
    const sourceId = await makeSource()
    const journal = (): Query<unknown> => journalRejection(rejectionOf(sourceId), 'forged')
    for (let n = 1; n < REJECTIONS_PER_MINUTE; n++) await database.run(journal())
    const run = async (client: pg.Client, { text, values }: Query<unknown>) =>
      (await client.query(text, [...values])).rowCount
    const reject = async (client: pg.Client): Promise<number | null> => {
      await client.query('begin')
      await run(client, takeTurns('webhook-rejections', sourceId))
      return run(client, journal())
    }
    assert.equal(await reject(first), 1)
    const waiting = reject(second)
    const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await Promise.race([waiting, waitFor('it to wait', async () => (await database.sql(blocked)).length > 0)])
    await first.query('commit')
    assert.equal(await waiting, 0, 'the journal has sixty')
    await second.query('commit')
    assert.equal((await database.run(journalRejection(rejectionOf(await makeSource()), 'forged'))).length, 1)
  }))

test('a minute later there is room again', async () => {
  const sourceId = await makeSource()
  const at = (record: DeliveryRecord, ms: number): DeliveryRecord => {
    const time = (Date.now() + ms).toString(16).padStart(12, '0')
    return { ...record, id: `${time.slice(0, 8)}-${time.slice(8)}${record.id.slice(13)}` }
  }
  const journal = async (ms: number) =>
    (await database.run(journalRejection(at(rejectionOf(sourceId), ms), 'forged'))).length
  for (let n = 0; n < REJECTIONS_PER_MINUTE; n++) assert.equal(await journal(n), 1)
  assert.equal(await journal(1_000), 0)
  assert.equal(await journal(59_000), 0)
  assert.equal(await journal(61_000), 1)
})
