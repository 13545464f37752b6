import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'
import { openStream } from '../support/stream.ts'
import { signIn } from '../support/tenants.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
/** A platform admin. */
let root: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ada = await registerUser(edge)
  root = await registerUser(edge)
  await database.sql('update users set is_admin = true where id = $1', [root.userId])
  root = { ...root, token: (await signIn(edge, root)).body.access_token }
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const get = (path: string, account = ada) => edge.request('GET', path, { token: account.token })

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
  const seenByAll = {
    worker_id: 'pod-1',
    status: 'online',
    slots: 10,
    cpu_units: 2.5,
    memory_mb: 512,
    types: ['http', 'test'],
  }
  assert.deepEqual(first, { ...seenByAll, hostname: null, jobs_processed: null, running: 0 })
  const { last_seen: _, started_at: __, ...whole } = (await get('/jobs/workers', root)).body.items[0]
  assert.deepEqual(whole, {
    ...seenByAll,
    hostname: 'host-a',
    jobs_processed: 5_000_000_000,
    running: 3,
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

test('an organisation sees its own jobs on a worker, but in no response its host or the jobs of others', async (t) => {
  const bob = await registerUser(edge)
  const held = Promise.withResolvers<void>()
  const worker = prepareWorker(database.url, [
    handle(async ({ ends }) => {
      if (ends === 'badly') throw new Error('It broke.')
      if (ends !== 'well') await held.promise
    }),
  ])
  await worker.start()
  t.after(() => {
    held.resolve()
    return worker.stop()
  })
  const submit = (account: TestAccount, name: string, payload: object, max_attempts = 1) =>
    seedJobs(database.run, account, [newJob({ name, type: 'test', payload: { ...payload }, max_attempts })])
  const [done] = await submit(ada, 'done', { ends: 'well' })
  const [failed] = await submit(ada, 'failed', { ends: 'badly' })
  const [running] = await submit(ada, 'running', {})
  await submit(bob, 'running too', {})
  await submit(bob, 'running too', {})
  await waitFor('all of them', async () => {
    const states = await database.sql<{ status: string }>(
      'select status::text as status from job_overview order by 1',
    )
    return states.map(({ status }) => status).join() === 'completed,failed,running,running,running'
  })
  const isIt = ({ worker_id }: { worker_id: string }) => worker_id === worker.id
  const own = async (account: TestAccount) => (await get('/jobs/workers', account)).body.items.find(isIt)
  assert.deepEqual([(await own(ada)).running, (await own(bob)).running], [1, 2])
  await waitFor('the heartbeat', async () => (await own(root)).running === 3)
  assert.equal((await own(root)).hostname, hostname())

  const { paths } = (await get('/openapi.json')).body
  const reads = Object.keys(paths).filter((path) => paths[path].get && !STREAMS.has(path))
  const seen = reads.flatMap((path) =>
    [done, failed, running].map((id) => get(path.replace(/\{\w+\}/, id ?? ''))),
  )
  const stream = await openStream(edge, { token: ada.token, query: { topics: 'workers' } })
  const frame = await stream.frame('workers')
  stream.close()
  // Matched as whole words: a short name may occur inside a cursor or a key.
  const hosts = [hostname(), 'host-a', 'host-b'].map((host) => new RegExp(`(?<![\\w-])${host}(?!\\w)`))
  for (const text of [...(await Promise.all(seen)).map(({ text }) => text), JSON.stringify(frame)]) {
    for (const host of hosts) assert.doesNotMatch(text, host)
  }
  const mine = frame.workers?.find(isIt)
  assert.deepEqual(mine, { ...(await own(ada)), last_seen: mine?.last_seen })
  const full = await openStream(edge, { token: root.token, query: { topics: 'workers' } })
  const all = (await full.frame('workers')).workers?.find(isIt)
  assert.deepEqual([all?.hostname, all?.running], [hostname(), 3])
  full.close()
})

test('each admin who follows the workers sees all of them, also beside many others and one who is no admin any more', async () => {
  const admins = await Promise.all(Array.from({ length: 5 }, () => registerUser(edge)))
  const ids = admins.map(({ userId }) => userId)
  await database.sql('update users set is_admin = true where id = any ($1)', [ids])
  const tokens = await Promise.all(admins.map(async (one) => (await signIn(edge, one)).body.access_token))
  const follow = (token: string) =>
    openStream(edge, { token, query: { topics: 'workers' }, headers: { 'smartqueue-org': ada.orgId } })
  const clients = []
  for (const token of tokens) clients.push(await follow(token))
  for (const client of clients) assert.equal((await client.frame('workers')).workers?.[0]?.hostname, 'host-a')
  const [demoted, ...others] = clients
  await database.sql(
    `insert into memberships (org_id, user_id, role) select $1, id, 'user' from users where id = $2`,
    [ada.orgId, ids[0]],
  )
  await database.sql('update users set is_admin = false where id = $1', [ids[0]])
  await database.sql(`update workers set slots = 11 where worker_id = 'pod-1'`)
  for (const client of others) {
    await client.until('the change', () => client.frames.at(-1)?.workers?.[0]?.slots === 11)
  }
  assert.ok(!demoted?.frames.some(({ workers }) => workers?.[0]?.slots === 11))
  for (const client of clients) client.close()
})

const STREAMS = new Set(['/jobs/stream', '/jobs/events'])
