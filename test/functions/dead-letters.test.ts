import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claimJob, end, jobInState } from '../support/job-in-state.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  bob = await registerUser(edge)
})
beforeEach(async () => {
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const get = (path: string) => edge.request('GET', path, { token: ada.token })
const replay = (json: unknown) => edge.request('POST', '/dlq/replay', { json, token: ada.token })
const failedCount = async () => (await get('/jobs?status=failed&limit=200')).body.items.length

/** Jobs that failed with these messages, oldest first. */
const fail = async (
  messages: string[],
  { type = 'test', code = 'broken', account = ada } = {},
): Promise<string[]> => {
  const ids = []
  for (const message of messages) {
    const [id] = await seedJobs(database.run, account, [newJob({ type })])
    assert.ok(id)
    await end(database.run, await claimJob(database.run, id, type), {
      outcome: 'failed',
      error: { code, message },
      permanent: true,
    })
    ids.push(id)
  }
  return ids
}

test('failed jobs are grouped by what went wrong', async () => {
  const ids = await fail(['User 17 is gone.', 'User 4711 is gone.', 'User 5 is gone.', 'User 6 is gone.'])
  const [timeout] = await fail(['Took longer than 30 s.'], { code: 'timeout', type: 'other' })
  await fail(['User 18 is gone.'], { account: bob })
  await jobInState(database.run, ada, 'cancelled')
  const { status, body, text } = await get('/dlq')
  assert.equal(status, 200, text)
  assert.equal(body.next_cursor, null)
  const [newest, gone, ...others] = body.items
  assert.deepEqual(others, [])
  assert.deepEqual([newest.count, newest.code, newest.types], [1, 'timeout', ['other']])
  assert.deepEqual(newest.example_job_ids, [timeout])
  assert.deepEqual([gone.count, gone.code, gone.message], [4, 'broken', 'User 6 is gone.'])
  assert.deepEqual(gone.example_job_ids, ids.slice(1).toReversed())
  const first = (await get(`/jobs/${ids[0]}`)).body
  assert.equal(gone.first_failed_at, first.finished_at)
  const members = (await get(`/jobs?fingerprint=${gone.fingerprint}`)).body.items
  assert.deepEqual(
    members.map(({ id }: { id: string }) => id),
    ids.toReversed(),
  )
})

test('groups are listed page by page, each once', async () => {
  await fail(['alpha', 'beta', 'gamma', 'delta', 'alpha'])
  const seen: string[] = []
  for (let path = '/dlq?limit=2'; ; ) {
    const { body } = await get(path)
    seen.push(...body.items.map(({ message }: { message: string }) => message))
    if (body.next_cursor === null) break
    path = `/dlq?limit=2&cursor=${body.next_cursor}`
  }
  assert.deepEqual(seen, ['alpha', 'delta', 'gamma', 'beta'])
})

test('groups are listed by type and name', async () => {
  await fail(['one', 'two'], { type: 'first' })
  await fail(['two', 'three'], { type: 'second' })
  const messages = async (query: string) =>
    (await get(`/dlq?${query}`)).body.items.map((g: { message: string; count: number }) => [
      g.message,
      g.count,
    ])
  assert.deepEqual(await messages('type=first'), [
    ['two', 1],
    ['one', 1],
  ])
  assert.deepEqual(await messages('name=a%20job'), [
    ['three', 1],
    ['two', 2],
    ['one', 1],
  ])
  assert.deepEqual(await messages('type=second&name=other'), [])
  assertProblem(await get('/dlq?type=a%00'), 422, 'invalid-request', '#/type')
  assertProblem(await get(`/dlq?cursor=${btoa("1.' or 1=1")}`), 422, 'invalid-request', '#/cursor')
})

test('dead letters are replayed by error, by type, by id, or all of them', async () => {
  const ids = await fail(['one', 'two', 'three'])
  await fail(['one'], { type: 'other' })
  const strangers = await fail(['one'], { account: bob })
  const one = (await get('/dlq')).body.items.find(({ message }: { message: string }) => message === 'one')
  assert.deepEqual((await replay({ fingerprint: one.fingerprint, type: 'test' })).body, {
    replayed: 1,
    done: true,
  })
  assert.equal((await get(`/jobs/${ids[0]}`)).body.status, 'ready')
  assert.deepEqual((await replay({ job_ids: [ids[1], ids[0], ...strangers] })).body, {
    replayed: 1,
    done: true,
  })
  assert.deepEqual((await replay({ type: 'other' })).body, { replayed: 1, done: true })
  assert.deepEqual((await replay({ all: true })).body, { replayed: 1, done: true })
  assert.equal(await failedCount(), 0)
  assert.deepEqual((await replay({ all: true })).body, { replayed: 0, done: true })
  assert.equal(
    (await edge.request('GET', `/jobs/${strangers[0]}`, { token: bob.token })).body.status,
    'failed',
  )
})

test('a limit leaves the rest for the next request', async () => {
  await fail(['a', 'b', 'c'])
  assert.deepEqual((await replay({ all: true, limit: 2 })).body, { replayed: 2, done: false })
  assert.deepEqual((await replay({ all: true, limit: 2 })).body, { replayed: 1, done: true })
})

test('cancelled jobs are no dead letters', async () => {
  const id = await jobInState(database.run, ada, 'cancelled')
  assert.deepEqual((await replay({ job_ids: [id] })).body, { replayed: 0, done: true })
  assert.deepEqual((await replay({ all: true })).body, { replayed: 0, done: true })
})

test('a replay must say which jobs', async () => {
  const refused = [
    {},
    { limit: 5 },
    { all: false },
    { all: true, type: 'test' },
    { job_ids: [] },
    { job_ids: ['x'] },
  ]
  for (const json of refused) assertProblem(await replay(json), 422, 'invalid-request')
})
