import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { JOBS_CANCELLED, JOBS_READY } from '../../db/queries/notifications.ts'
import { setQuotas } from '../../db/queries/quotas.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claimTypes, jobInState } from '../support/job-in-state.ts'
import { completed, end, newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
let listener: pg.Client
const heard: string[] = []
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
  listener = new pg.Client(database.url)
  await listener.connect()
  listener.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`))
  await listener.query(`listen ${JOBS_READY}; listen ${JOBS_CANCELLED}`)
})
after(async () => {
  await listener.end()
  await edge.stop()
  await database.drop()
})

const ask = async (account = ada) => (await edge.request('GET', '/queue', { token: account.token })).body
const look = async (account = ada) => pausesIn(await ask(account))
const pausesIn = ({ paused, paused_types }: { paused: boolean; paused_types: string[] }) => ({
  paused,
  paused_types,
})
const send = (action: 'pause' | 'resume', json: unknown) =>
  edge.request('POST', `/queue/${action}`, { json, token: ada.token })

test('the queue, and types of it, are paused and resumed', async () => {
  assert.deepEqual(await look(), { paused: false, paused_types: [] })
  assert.deepEqual(pausesIn((await send('pause', { type: 'mail' })).body), {
    paused: false,
    paused_types: ['mail'],
  })
  assert.deepEqual(pausesIn((await send('pause', { type: 'http' })).body), {
    paused: false,
    paused_types: ['http', 'mail'],
  })
  assert.deepEqual(pausesIn((await send('pause', { type: 'http' })).body), {
    paused: false,
    paused_types: ['http', 'mail'],
  })
  assert.deepEqual(pausesIn((await send('pause', {})).body), { paused: true, paused_types: ['http', 'mail'] })
  assert.deepEqual(await look(bob), { paused: false, paused_types: [] }, "others' queues go on")
  assert.deepEqual(pausesIn((await send('resume', {})).body), {
    paused: false,
    paused_types: ['http', 'mail'],
  })
  assert.deepEqual(pausesIn((await send('resume', { type: 'mail' })).body), {
    paused: false,
    paused_types: ['http'],
  })
  assert.deepEqual(pausesIn((await send('resume', { type: 'http' })).body), {
    paused: false,
    paused_types: [],
  })
  assert.deepEqual(pausesIn((await send('resume', { type: 'http' })).body), {
    paused: false,
    paused_types: [],
  })
})

/** Beyond the second for which the sums of the queue stand. */
const lookLater = async (account = ada) => {
  await database.sql('delete from smartqueue.queue_snapshots')
  return ask(account)
}

const seedUse = async (account: TestAccount, ms: number, waiting: number): Promise<void> => {
  await seedJobs(database.run, account, [newJob({ type: 'used' })])
  const [held] = await claimTypes(database.run, ['used'])
  assert.equal(held?.org_id, account.orgId)
  await end(database.run, completed(held, null, ms))
  await seedJobs(
    database.run,
    account,
    Array.from({ length: waiting }, () => newJob({ type: 'waits' })),
  )
}

test('an organisation sees its share, its use and what waits, and nothing of another', async () => {
  const idle = {
    weight: 1,
    share: 1,
    used: 0,
    waiting_jobs: 0,
    waiting_seconds: 0,
    running_jobs: 0,
    short_since: null,
  }
  assert.deepEqual((await lookLater()).share, idle)
  await seedUse(ada, 6_000, 2)
  await seedUse(bob, 2_000, 3)
  await database.run(setQuotas(bob.orgId, { weight: 3 }))
  const told = await lookLater()
  assert.deepEqual(told, {
    paused: false,
    paused_types: [],
    share: { ...idle, share: 0.25, used: 0.75, waiting_jobs: 2, waiting_seconds: 2 },
  })
  const { share } = await ask(bob)
  assert.deepEqual(
    { ...share, short_since: null },
    { ...idle, weight: 3, share: 0.75, used: 0.25, waiting_jobs: 3, waiting_seconds: 3 },
  )
  assert.ok(Math.abs(Date.parse(share.short_since) - Date.now()) < 60_000, 'less than half of its share')
})

test('an admin sees the shares of all organisations, highest usage first', async () => {
  const eve = await registerUser(edge)
  await database.sql('update users set is_admin = true where id = $1', [eve.userId])
  const { body } = await edge.request('POST', `/orgs/${eve.orgId}/switch`, { token: eve.token })
  const answer = await edge.request('GET', '/queue', { token: body.access_token })
  const names = answer.body.organisations.map(({ id, name }: { id: string; name: string }) => ({
    id,
    name: name !== '',
  }))
  assert.deepEqual(
    names,
    [ada, bob].map(({ orgId: id }) => ({ id, name: true })),
  )
  const [first] = answer.body.organisations
  assert.deepEqual({ ...first, name: '', ...(await ask()).share }, { ...first, name: '' })
  assert.equal(answer.body.share.waiting_jobs, 0, 'that of their own organisation')
})

test('nothing of a paused queue is claimed, and workers are told when it goes on', async () => {
  const [id] = await seedJobs(database.run, ada, [newJob({ type: 'halted' })])
  await send('pause', {})
  assert.deepEqual(await claimTypes(database.run, ['halted']), [])
  heard.length = 0
  await send('resume', {})
  await waitFor('the notification', () => heard.includes(`${JOBS_READY} halted`))
  const [job] = await claimTypes(database.run, ['halted'])
  assert.equal(job?.job_id, id)
})

test('the worker of a cancelled job and those that can run a retried one are told', async () => {
  const id = await jobInState(database.run, ada, 'running', { type: 'told' })
  await edge.request('PATCH', `/jobs/${id}/cancel`, { token: ada.token })
  await waitFor('the notification', () => heard.includes(`${JOBS_CANCELLED} worker-1`))
  await edge.request('POST', `/jobs/${id}/retry`, { token: ada.token })
  await waitFor('the notification', () => heard.includes(`${JOBS_READY} told`))
})

test('bad pauses are refused', async () => {
  assertProblem(await send('pause', { type: '' }), 422, 'invalid-request', '#/type')
  assertProblem(await send('pause', { name: 'x' }), 422, 'invalid-request', '#/name')
  assertProblem(await edge.request('GET', '/queue'), 401, 'unauthenticated')
})
