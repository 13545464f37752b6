import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let accounts: TestAccount[]
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
  accounts = await Promise.all(Array.from({ length: 5 }, () => registerUser(edge)))
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const submissions = (count: number, run: string) =>
  Array.from({ length: count }, (_, n) => {
    const account = accounts[n % accounts.length]
    assert.ok(account)
    return { account, json: { name: `${run} ${n}`, type: 'test', payload: { n } } }
  })

const transactions = (run: string) =>
  database.sql<{ jobs: number; commits: number }>(
    'select count(*)::int as jobs, count(distinct xmin::text)::int as commits from jobs where name like $1',
    [`${run} %`],
  )

test('200 requests of several organisations at the same time each get their own job', async () => {
  const answers = await Promise.all(
    submissions(200, 'together').map(async ({ account, json }) => ({
      account,
      json,
      answer: await edge.request('POST', '/jobs', { json, token: account.token }),
    })),
  )
  for (const { account, json, answer } of answers) {
    assert.equal(answer.status, 201, answer.text)
    assert.deepEqual(
      [answer.body.name, answer.body.payload, answer.body.org_id, answer.body.created_by],
      [json.name, json.payload, account.orgId, account.userId],
    )
  }
  const ids = answers.map(({ answer }) => answer.body.id)
  const rows = await database.sql<{ id: string; name: string }>(
    'select id, name from jobs where id = any ($1)',
    [ids],
  )
  assert.deepEqual(
    new Map(rows.map(({ id, name }) => [id, name])),
    new Map(answers.map(({ json, answer }) => [answer.body.id, json.name])),
  )
  const [stored] = await transactions('together')
  assert.equal(stored?.jobs, 200)
  assert.ok((stored?.commits ?? 200) < 100, `${stored?.commits} transactions: requests share them`)
})

test('clients that hang up keep nobody else from being served', async () => {
  const others = submissions(100, 'patient').map(({ account, json }) =>
    edge.request('POST', '/jobs', { json, token: account.token }),
  )
  const gone = submissions(100, 'impatient').map(async ({ account, json }, n) => {
    const headers = { authorization: `Bearer ${account.token}`, 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify(json), signal: AbortSignal.timeout(n) }
    await fetch(new URL('/jobs', edge.url), request).catch(() => {})
  })
  const answers = await Promise.all(others)
  await Promise.all(gone)
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
  const later = await edge.request('POST', '/jobs', {
    json: { name: 'later', type: 'test', payload: {} },
    token: accounts[0]?.token ?? '',
  })
  assert.equal(later.status, 201)
  assert.deepEqual((await transactions('patient'))[0]?.jobs, 100)
})

test('a refused submission takes no other with it', async () => {
  const answers = await Promise.all(
    submissions(60, 'mixed').map(({ account, json }, n) =>
      edge.request('POST', '/jobs', {
        json: n % 3 === 0 ? { ...json, depends_on: [crypto.randomUUID()] } : json,
        token: account.token,
      }),
    ),
  )
  answers.forEach((answer, n) => {
    if (n % 3 === 0) assertProblem(answer, 422, 'unknown-dependency', '#/depends_on/0')
    else assert.equal(answer.status, 201, answer.text)
  })
})

test('reads of several organisations at the same time each get their own job, though clients hang up', async () => {
  const jobs = await Promise.all(
    submissions(20, 'read').map(async ({ account, json }) => ({
      account,
      id: (await edge.request('POST', '/jobs', { json, token: account.token })).body.id as string,
    })),
  )
  const patient = Array.from({ length: 200 }, async (_, n) => {
    const { account, id } = jobs[n % jobs.length] ?? {}
    const answer = await edge.request('GET', `/jobs/${id}`, { token: account?.token ?? '' })
    assert.deepEqual([answer.status, answer.body.id, answer.body.org_id], [200, id, account?.orgId])
  })
  const impatient = Array.from({ length: 100 }, async (_, n) => {
    const { account, id } = jobs[n % jobs.length] ?? {}
    const headers = { authorization: `Bearer ${account?.token}` }
    const request = { headers, signal: AbortSignal.timeout(n) }
    await fetch(new URL(`/jobs/${id}`, edge.url), request).catch(() => {})
  })
  // A job of somebody else does not exist, also beside reads of it by its owner.
  const strangers = jobs.map(async ({ id }, n) => {
    const other = accounts[(n + 1) % accounts.length]
    assertProblem(await edge.request('GET', `/jobs/${id}`, { token: other?.token ?? '' }), 404, 'not-found')
  })
  await Promise.all([...patient, ...impatient, ...strangers])
})
