import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claim, clearJobs, completed, end } from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes(['test', 'orphan'].map((type) => ({ type, payload_schema: {} }))))
  edge = await startEdge({ databaseUrl: database.url })
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

/** Each test in a series and on a queue of its own: the functions remember both for a second. */
let names = 0
let name = ''
beforeEach(async () => {
  await clearJobs(database.sql)
  await reportLive(database.run)
  name = `report ${++names}`
  await untilNoticed(0)
})

type Eta = { start_at: string; finish_p50_at: string; finish_p90_at: string }
type Job = { id: string; status: string; created_at: string; eta: Eta | null }

const job = (overrides: object = {}) => ({ name, type: 'test', payload: {}, ...overrides })

const ask = (method: string, path: string, json?: unknown) =>
  edge.request(method, path, { token: ada.token, ...(json !== undefined && { json }) })

const submit = async (overrides: object = {}): Promise<Job> => {
  const { status, body, text } = await ask('POST', '/jobs', job(overrides))
  assert.equal(status, 201, text)
  return body
}
const get = async (id: string): Promise<Job> => (await ask('GET', `/jobs/${id}`)).body

const secondsUntil = (time: string | undefined, from: string): number =>
  Math.round((Date.parse(time ?? '') - Date.parse(from)) / 100) / 10

/** Until the functions have seen how long the queue is, and who works. */
const untilNoticed = async (waitSeconds: number): Promise<void> => {
  await waitFor('the queue to be noticed', async () => {
    const { body } = await ask('POST', '/predictions', job({ name: 'probe' }))
    const wait = body.eta && (Date.parse(body.eta.start_at) - Date.now()) / 1000
    return wait !== null && Math.abs(wait - waitSeconds) < 0.5
  })
}

test('a job is told when it will start and end, alone on a free slot', async () => {
  const { eta, created_at, id } = await submit()
  assert.equal(secondsUntil(eta?.start_at, created_at), 0)
  assert.equal(secondsUntil(eta?.finish_p50_at, created_at), 1)
  const takes = secondsUntil(eta?.finish_p90_at, created_at)
  assert.ok(Math.abs(takes - 10.75) < 0.1, `${takes} s`)
  const [row] = await database.sql('select promised_wait_ms from jobs where id = $1', [id])
  assert.deepEqual(row, { promised_wait_ms: 0 })
})

test('a job stands behind the one before it, also if that was submitted a moment ago', async () => {
  await submit()
  const { eta, created_at } = await submit()
  const wait = secondsUntil(eta?.start_at, created_at)
  assert.ok(wait > 0.5 && wait <= 1, `${wait} s`)
})

test('jobs of a batch stand behind each other by their priority', async () => {
  const { status, body, text } = await ask('POST', '/jobs/batch', {
    jobs: [job(), job({ priority: 'high' }), job()],
  })
  assert.equal(status, 201, text)
  const starts = body.jobs.map(({ eta, created_at }: Job) => secondsUntil(eta?.start_at, created_at))
  assert.deepEqual(starts, [1, 0, 2])
})

test('a job of a batch starts after those of the batch that it depends on', async () => {
  const { body } = await ask('POST', '/jobs/batch', {
    jobs: [job({ name: `${name} load`, depends_on: ['ref:extract'] }), job({ ref: 'extract' })],
  })
  const [load, extract] = body.jobs as Job[]
  assert.equal(load?.eta?.start_at, extract?.eta?.finish_p50_at)
  assert.deepEqual((await get(load?.id ?? '')).status, 'blocked')
  const later = (await get(load?.id ?? '')).eta
  assert.ok(later && Math.abs(secondsUntil(later.start_at, load?.created_at ?? '') - 1) < 0.5)
})

test('a job that waits for one that waits itself has no estimate', async () => {
  const parent = await submit({ name: `${name} parent`, run_at: '2999-01-01T00:00:00Z' })
  const child = await submit({ depends_on: [parent.id] })
  assert.equal(child.eta, null)
  assert.equal((await get(child.id)).eta, null)
})

test('a job does not start before its time', async () => {
  const run_at = new Date(Date.now() + 3_600_000).toISOString()
  const { id, eta } = await submit({ run_at })
  assert.ok(Math.abs(secondsUntil(eta?.start_at, run_at)) < 0.2)
  // What passes between the promise and the commit counts as a wait, and makes the end a little less certain.
  const takes = secondsUntil(eta?.finish_p90_at, eta?.start_at ?? '')
  assert.ok(Math.abs(takes - 10.75) < 0.4, `${takes} s`)
  const later = await get(id)
  assert.deepEqual([later.status, later.eta?.start_at], ['pending', run_at])
})

test('a job in the queue is told the same by everybody who asks, from what is ahead of it', async () => {
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await submit()).id)
  const { eta } = await get(ids[2] ?? '')
  const wait = (Date.parse(eta?.start_at ?? '') - Date.now()) / 1000
  assert.ok(wait > 1 && wait <= 2, `${wait} s`)
})

test('a running job started when it did, and ends by its prediction; a finished one is not estimated', async () => {
  const { id } = await submit()
  const [held] = await claim(database.run)
  assert.ok(held)
  const running = await ask('GET', `/jobs/${id}`)
  assert.equal(running.body.status, 'running')
  assert.equal(running.body.eta.start_at, running.body.started_at)
  assert.equal(secondsUntil(running.body.eta.finish_p50_at, running.body.started_at), 1)
  await end(database.run, completed(held))
  assert.equal((await get(id)).eta, null)
})

test('a job that no live worker can run is promised nothing', async () => {
  assert.equal((await submit({ type: 'orphan' })).eta, null)
  const big = await submit({ name: `${name} big`, resources: { cpu_units: 64 } })
  assert.equal(big.eta, null)
  assert.equal((await get(big.id)).eta, null)
})

test('a submission that is repeated is answered the same estimate', async () => {
  const headers = { 'idempotency-key': name }
  const send = () => edge.request('POST', '/jobs', { json: job(), token: ada.token, headers })
  const first = await send()
  const again = await send()
  assert.deepEqual([first.status, again.status], [201, 200])
  assert.ok(first.body.eta)
  assert.deepEqual(again.body, first.body)
})
