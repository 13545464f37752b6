import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const get = (path: string) => edge.request('GET', path, { token: ada.token })

test('workers are listed with what they can do and how they are', async () => {
  assert.deepEqual((await get('/jobs/workers')).body, { items: [], next_cursor: null })
  await database.sql(`
    insert into workers (worker_id, hostname, status, types, slots, cpu_units, memory_mb, running, jobs_processed, last_seen)
    values
      ('pod-1', 'host-a', 'online', '{http,test}', 10, 2.5, 512, 3, 5000000000, now()),
      ('pod-2', 'host-b', 'draining', '{http}', 10, 1, 64, 0, 0, now()),
      ('pod-3', 'host-b', 'online', '{http}', 10, 1, 64, 9, 0, now() - interval '11 seconds')`)
  const { items } = (await get('/jobs/workers')).body
  assert.deepEqual(
    items.map((worker: Record<string, unknown>) => [worker.worker_id, worker.status]),
    [
      ['pod-1', 'online'],
      ['pod-2', 'draining'],
      ['pod-3', 'offline'],
    ],
  )
  const { last_seen, started_at, ...first } = items[0]
  assert.ok(Date.parse(last_seen) && Date.parse(started_at))
  assert.deepEqual(first, {
    worker_id: 'pod-1',
    hostname: 'host-a',
    status: 'online',
    jobs_processed: 5_000_000_000,
    running: 3,
    slots: 10,
    cpu_units: 2.5,
    memory_mb: 512,
    types: ['http', 'test'],
  })
  const page = (await get('/jobs/workers?limit=2')).body
  const next = (await get(`/jobs/workers/?limit=2&cursor=${page.next_cursor}`)).body
  assert.deepEqual([page.items.length, next.items[0].worker_id, next.next_cursor], [2, 'pod-3', null])
})

test('a cursor that is none of this list is refused', async () => {
  assertProblem(await get('/jobs/workers?cursor=zzzz'), 422, 'invalid-request')
})

test('the leader of the newest term is shown, if there ever was one', async () => {
  assertProblem(await get('/jobs/scheduler/leader'), 404, 'not-found')
  await database.sql(`insert into scheduler_leader (worker_id, term, backend_pid) values ('pod-1', 7, 123)`)
  const { status, body } = await get('/jobs/scheduler/leader')
  assert.equal(status, 200)
  assert.deepEqual([body.worker_id, body.term, Object.keys(body).length], ['pod-1', 7, 4])
  assert.ok(Date.parse(body.elected_at) && Date.parse(body.last_seen))
})

test('who is not signed in sees neither', async () => {
  assertProblem(await edge.request('GET', '/jobs/workers'), 401, 'unauthenticated')
  assertProblem(await edge.request('GET', '/jobs/scheduler/leader'), 401, 'unauthenticated')
})

test('types are listed with their schemas and how many workers take them now, but none of our own', async () => {
  const payload_schema = { type: 'object', properties: { url: { type: 'string' } } }
  await database.run(
    registerJobTypes([
      { type: 'http', payload_schema },
      { type: 'retired', payload_schema: {} },
      { type: 'callback', payload_schema: {} },
      { type: 'test', payload_schema: {} },
    ]),
  )
  const { status, body, text } = await get('/jobs/types')
  assert.equal(status, 200, text)
  // Of the three workers above one drains and one is not seen any more.
  assert.deepEqual(body, {
    items: [
      { type: 'http', payload_schema, workers: 1 },
      { type: 'retired', payload_schema: {}, workers: 0 },
      { type: 'test', payload_schema: {}, workers: 1 },
    ],
    next_cursor: null,
  })
  const page = (await get('/jobs/types?limit=2')).body
  const next = (await get(`/jobs/types?limit=2&cursor=${page.next_cursor}`)).body
  assert.deepEqual([page.items.length, next.items[0].type, next.next_cursor], [2, 'test', null])
  assertProblem(await get('/jobs/types?cursor=zzzz'), 422, 'invalid-request')
})
