import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { JOBS_CANCELLED, JOBS_READY } from '../../db/queries/notifications.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claimTypes, jobInState } from '../support/job-in-state.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
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

const look = async (account = ada) => (await edge.request('GET', '/queue', { token: account.token })).body
const send = (action: 'pause' | 'resume', json: unknown) =>
  edge.request('POST', `/queue/${action}`, { json, token: ada.token })

test('the queue, and types of it, are paused and resumed', async () => {
  assert.deepEqual(await look(), { paused: false, paused_types: [] })
  assert.deepEqual((await send('pause', { type: 'mail' })).body, { paused: false, paused_types: ['mail'] })
  assert.deepEqual((await send('pause', { type: 'http' })).body, {
    paused: false,
    paused_types: ['http', 'mail'],
  })
  assert.deepEqual((await send('pause', { type: 'http' })).body, {
    paused: false,
    paused_types: ['http', 'mail'],
  })
  assert.deepEqual((await send('pause', {})).body, { paused: true, paused_types: ['http', 'mail'] })
  assert.deepEqual(await look(bob), { paused: false, paused_types: [] }, "others' queues go on")
  assert.deepEqual((await send('resume', {})).body, { paused: false, paused_types: ['http', 'mail'] })
  assert.deepEqual((await send('resume', { type: 'mail' })).body, { paused: false, paused_types: ['http'] })
  assert.deepEqual((await send('resume', { type: 'http' })).body, { paused: false, paused_types: [] })
  assert.deepEqual((await send('resume', { type: 'http' })).body, { paused: false, paused_types: [] })
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
