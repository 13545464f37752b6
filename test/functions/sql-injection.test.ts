import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'

let database: TestDatabase
let edge: Edge
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const ATTACKS = [
  `'; drop table jobs; --`,
  `' or '1'='1`,
  `$1`,
  `\\'; select pg_sleep(10); --`,
  `{"a":1}`,
  `%s`,
  `"`,
  '`',
]

test('SQL text in string fields of a job is stored as text', async () => {
  const { token } = await registerUser(edge)
  for (const attack of ATTACKS) {
    const json = { name: attack, type: 'test', payload: { [attack]: attack, list: [attack] }, tags: [attack] }
    const { status, body, text } = await edge.request('POST', '/jobs', { json, token })
    assert.equal(status, 201, text)
    const read = (await edge.request('GET', `/jobs/${body.id}`, { token })).body
    assert.deepEqual([read.name, read.payload, read.tags], [json.name, json.payload, json.tags])
  }
  assert.equal((await database.sql('select id from jobs')).length, ATTACKS.length)
})

test('SQL text in every other string field is refused, never run', async () => {
  const { token } = await registerUser(edge)
  const job = { name: 'n', type: 'test', payload: {} }
  for (const attack of ATTACKS) {
    const credentials = { username: attack, password: attack.padEnd(8, 'x') }
    const answers = [
      await edge.request('POST', '/auth/register', { json: credentials }),
      await edge.request('POST', '/auth/login', { json: credentials }),
      await edge.request('POST', '/auth/refresh', { json: { refresh_token: attack } }),
      await edge.request('POST', '/auth/refresh', {
        json: {},
        headers: {
          'smartqueue-session': 'cookie',
          cookie: `smartqueue_session=${encodeURIComponent(attack)}`,
        },
      }),
      await edge.request('POST', '/jobs', { token, json: { ...job, type: attack } }),
      await edge.request('POST', '/jobs', { token, json: { ...job, priority: attack } }),
      await edge.request('POST', '/jobs', { token, json: { ...job, run_at: attack } }),
      await edge.request('GET', `/jobs/${encodeURIComponent(attack)}`, { token }),
      await edge.request('GET', `/jobs?cursor=${encodeURIComponent(attack)}`, { token }),
      await edge.request('GET', `/jobs/${encodeURIComponent(attack)}/graph`, { token }),
      await edge.request('GET', `/jobs/types?cursor=${encodeURIComponent(attack)}`, { token }),
      await edge.request('GET', `/jobs?limit=${encodeURIComponent(attack)}`, { token }),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [422, 401, 401, 401, 422, 422, 422, 404, 422, 404, 422, 422],
    )
  }
})
