import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { setQuotas } from '../../db/queries/quotas.ts'
import type { Quota } from '../../db/rules/quotas.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { claimTypes, end, FAILED, jobInState } from '../support/job-in-state.ts'
import { assertProblem } from '../support/problem.ts'
import { makeCast } from '../support/tenants.ts'

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

const limited = async (limits: Partial<Record<Quota, number | null>>): Promise<TestAccount> => {
  const account = await registerUser(edge)
  await database.run(setQuotas(account.orgId, limits))
  return account
}

const job = (payload: object = {}) => ({ name: 'n', type: 'test', payload })

const submit = ({ token }: TestAccount, json: object = job()): Promise<Answer> =>
  edge.request('POST', '/jobs', { token, json })
const submitMany = ({ token }: TestAccount, count: number): Promise<Answer> =>
  edge.request('POST', '/jobs/batch', { token, json: { jobs: Array.from({ length: count }, () => job()) } })

const quotasOf = async ({ token }: TestAccount) =>
  (await edge.request('GET', '/orgs/me/quotas', { token })).body

const countJobs = async ({ orgId }: TestAccount): Promise<number> =>
  (await database.sql('select from jobs where org_id = $1', [orgId])).length

/** Lets time pass for what an organisation has used: all that it has was used so much earlier. */
const pass = ({ orgId }: TestAccount, seconds: number) =>
  database.sql(
    `update quota_states set
       minute_at = minute_at - $2::int,
       minute_slots = array(
         select minute_slots[(slot + $2::int) % 61 + 1] from generate_series(0, 60) as slot order by slot
       ),
       day_at = day_at - $2::int / 3600,
       day_slots = array(
         select day_slots[(slot + $2::int / 3600) % 25 + 1] from generate_series(0, 24) as slot order by slot
       )
     where org_id = $1`,
    [orgId, seconds],
  )

const refused = (answers: Answer[]): number => answers.filter(({ status }) => status === 429).length

test('of 60 submissions at the same time exactly as many pass as may within a minute', async () => {
  const account = await limited({ submissions_per_minute: 25 })
  const answers = await Promise.all(Array.from({ length: 60 }, () => submit(account)))
  assert.equal(refused(answers), 35)
  assert.equal(await countJobs(account), 25)
  const answer = answers.find(({ status }) => status === 429)
  assert.ok(answer)
  assertProblem(answer, 429, 'quota-exceeded')
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait >= 55 && wait <= 61, String(wait))
  assert.equal(answer.headers.get('ratelimit-policy'), '"submissions_per_minute";q=25;w=60')
  assert.match(answer.headers.get('ratelimit') ?? '', /^"submissions_per_minute";r=0;t=\d+$/)
  assert.deepEqual((await quotasOf(account)).submissions_per_minute, { limit: 25, used: 25 })
})

test('a batch counts by its jobs, passes as a whole or not at all, and what has left the window counts no more', async () => {
  const account = await limited({ submissions_per_minute: 10 })
  assert.equal((await submitMany(account, 8)).status, 201)
  assert.equal((await submitMany(account, 3)).status, 429)
  const tooLarge = await submitMany(account, 11)
  assertProblem(tooLarge, 429, 'quota-exceeded')
  assert.match(tooLarge.body.detail, /this alone is 11: send less at once/)
  assert.equal(await countJobs(account), 8)
  assert.equal((await submitMany(account, 2)).status, 201)
  await pass(account, 30)
  assert.equal((await submit(account)).status, 429, 'half a minute is not enough')
  await pass(account, 31)
  assert.equal((await submitMany(account, 10)).status, 201)
})

test('others who submit at the same time are not disturbed', async () => {
  const [full, free] = [await limited({ submissions_per_minute: 0 }), await registerUser(edge)]
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => submit(n % 2 ? full : free).then((answer) => ({ n, answer }))),
  )
  for (const { n, answer } of answers) assert.equal(answer.status, n % 2 ? 429 : 201, answer.text)
  assert.equal(await countJobs(free), 20)
})

test('queued jobs are limited, and room is made when they end', async () => {
  const account = await limited({ queued_jobs: 5 })
  const answers = await Promise.all(Array.from({ length: 12 }, () => submit(account)))
  assert.equal(refused(answers), 7)
  assert.equal(answers.find(({ status }) => status === 429)?.headers.get('retry-after'), '10')
  const claimed = await claimTypes(database.run, ['test'])
  const own = claimed.filter(({ org_id }) => org_id === account.orgId)
  assert.equal(own.length, 5)
  await end(database.run, own[0] as (typeof own)[number], FAILED)
  // Counted at most once a second.
  await database.sql(`update quota_states set counted_at = now() - interval '2 seconds'`)
  assert.equal((await submit(account)).status, 201)
  assert.equal((await submit(account)).status, 429)
  const [failedJob] = await database.sql<{ job_id: string }>(
    'select job_id from finished_jobs where org_id = $1',
    [account.orgId],
  )
  const retry = () => edge.request('POST', `/jobs/${failedJob?.job_id}/retry`, { token: account.token })
  const retried = await retry()
  assertProblem(retried, 429, 'quota-exceeded')
  await database.run(setQuotas(account.orgId, { queued_jobs: 6 }))
  assert.equal((await retry()).status, 200)
  assert.equal((await submit(account)).status, 429, 'what was retried is counted')
})

test('retries of many jobs stop when the queue is full, and go on when there is room', async () => {
  const account = await limited({ queued_jobs: null })
  for (let n = 0; n < 6; n++) await jobInState(database.run, account, 'failed', { name: 'again' })
  const retry = () =>
    edge.request('POST', '/jobs/bulk/retry', { token: account.token, json: { filter: { name: 'again' } } })
  await database.run(setQuotas(account.orgId, { queued_jobs: 4 }))
  assert.deepEqual((await retry()).body, { matched: 6, changed: 4, done: false })
  assertProblem(await retry(), 429, 'quota-exceeded')
  const replay = (json: object) => edge.request('POST', '/dlq/replay', { token: account.token, json })
  assertProblem(await replay({ all: true }), 429, 'quota-exceeded')
  await database.run(setQuotas(account.orgId, { queued_jobs: null }))
  assert.deepEqual((await replay({ all: true })).body, { replayed: 2, done: true })
})

test('a server whose clock was far ahead has left nothing that counts', async () => {
  const account = await limited({ submissions_per_minute: 5 })
  assert.equal((await submitMany(account, 5)).status, 201)
  assert.equal((await submit(account)).status, 429)
  await database.sql(
    'update quota_states set minute_at = minute_at + 100000, day_at = day_at + 100 where org_id = $1',
    [account.orgId],
  )
  assert.equal((await submitMany(account, 5)).status, 201)
  assert.equal((await submit(account)).status, 429)
})

test('payload bytes are limited by the day, in UTF-8', async () => {
  const account = await limited({ payload_bytes_per_day: 60 })
  const payload = { text: 'üüüüüüüüüü' }
  assert.equal(Buffer.byteLength(JSON.stringify(payload)), 31)
  assert.equal((await submit(account, job(payload))).status, 201)
  assert.deepEqual((await quotasOf(account)).payload_bytes_per_day, { limit: 60, used: 31 })
  const over = await submit(account, job(payload))
  assertProblem(over, 429, 'quota-exceeded')
  const wait = Number(over.headers.get('retry-after'))
  assert.ok(wait > 24 * 3600 && wait <= 25 * 3600, String(wait))
  assert.equal((await submit(account)).status, 201, 'a smaller one still fits')
  await pass(account, 25 * 3600)
  assert.equal((await submit(account, job(payload))).status, 201)
})

test('what a submission that is refused for other reasons would have taken is not charged', async () => {
  const account = await limited({ submissions_per_minute: 3 })
  const orphan = { ...job(), depends_on: [crypto.randomUUID()] }
  for (let n = 0; n < 5; n++) assertProblem(await submit(account, orphan), 422, 'unknown-dependency')
  const keyed = { ...job(), idempotency_key: 'k' }
  for (let n = 0; n < 5; n++) assert.ok((await submit(account, keyed)).status < 300)
  assert.deepEqual((await quotasOf(account)).submissions_per_minute, { limit: 3, used: 1 })
})

test('without a limit nothing is refused', async () => {
  const account = await limited({
    submissions_per_minute: null,
    queued_jobs: null,
    payload_bytes_per_day: null,
  })
  assert.equal((await submitMany(account, 100)).status, 201)
  const quotas = await quotasOf(account)
  assert.deepEqual(quotas.submissions_per_minute, { limit: null, used: 100 })
  assert.deepEqual(quotas.queued_jobs, { limit: null, used: 100 })
})

test('a limit that comes back counts what was submitted while there was none', async () => {
  const account = await limited({
    queued_jobs: 10,
    submissions_per_minute: null,
    payload_bytes_per_day: null,
  })
  await submitMany(account, 4)
  await database.run(setQuotas(account.orgId, { queued_jobs: null }))
  await submitMany(account, 20)
  await database.run(setQuotas(account.orgId, { queued_jobs: 10 }))
  assert.equal((await submit(account)).status, 429)
})

test('only an admin sets quotas; the rest stays as it was', async () => {
  const { owner, admin } = await makeCast(edge, database)
  const change = (token: string, json: object, orgId = owner.orgId) =>
    edge.request('PATCH', `/orgs/${orgId}/quotas`, { token, json })
  assertProblem(await change(owner.token, { queued_jobs: 1 }), 403, 'forbidden')
  const changed = await change(admin.token, { queued_jobs: 7 })
  assert.deepEqual([changed.status, changed.body.queued_jobs.limit], [200, 7])
  assert.equal(changed.body.submissions_per_minute.limit, 1_000_000)
  await change(admin.token, { running_jobs: 3, queued_jobs: null })
  assert.deepEqual((await quotasOf(owner)).running_jobs, { limit: 3, used: 0 })
  assert.equal((await quotasOf(owner)).queued_jobs.limit, null)
  for (const json of [{}, { queued_jobs: -1 }, { queued_jobs: 1.5 }, { other: 1 }]) {
    assertProblem(await change(admin.token, json), 422, 'invalid-request')
  }
  assertProblem(await change(admin.token, { queued_jobs: 1 }, crypto.randomUUID()), 404, 'not-found')
})

test('only an admin sets the weight of an organisation, from 0.01 to 100', async () => {
  const { owner, admin } = await makeCast(edge, database)
  const change = (token: string, json: object, orgId = owner.orgId) =>
    edge.request('PATCH', `/orgs/${orgId}/quotas`, { token, json })
  assert.equal((await quotasOf(owner)).weight, 1)
  assertProblem(await change(owner.token, { weight: 100 }), 403, 'forbidden')
  for (const weight of [0.01, 0.5, 99.9, 100]) {
    const changed = await change(admin.token, { weight })
    assert.deepEqual([changed.status, changed.body.weight], [200, weight], changed.text)
    assert.deepEqual(await quotasOf(owner), changed.body)
  }
  await change(admin.token, { weight: 2 })
  await change(admin.token, { running_jobs: 3 })
  assert.partialDeepStrictEqual(await quotasOf(owner), {
    weight: 2,
    running_jobs: { limit: 3, used: 0 },
    submissions_per_minute: { limit: 1_000_000, used: 0 },
  })
  const { items } = (await edge.request('GET', '/orgs/me/audit', { token: owner.token })).body
  const targets = items.flatMap((entry: { action: string; target: object }) =>
    entry.action === 'org.quotas_changed' ? [entry.target] : [],
  )
  assert.deepEqual(targets.slice(0, 3), [{ running_jobs: 3 }, { weight: 2 }, { weight: 100 }])
})

test('a weight that is not a number from 0.01 to 100 is refused, and nothing of the request is stored', async () => {
  const { owner, admin } = await makeCast(edge, database)
  const before = await quotasOf(owner)
  const stored = () => database.sql('select * from quotas order by org_id')
  const rows = await stored()
  for (const weight of [0, -1, 0.0099, 100.01, 1e300, null, '2', true, [1], {}]) {
    const answer = await edge.request('PATCH', `/orgs/${owner.orgId}/quotas`, {
      token: admin.token,
      json: { queued_jobs: 7, weight },
    })
    assertProblem(answer, 422, 'invalid-request', '#/weight')
    assert.equal(answer.body.detail, '#/weight must be a number from 0.01 to 100')
  }
  for (const body of ['{"weight":NaN}', '{"weight":Infinity}', '{"weight":}']) {
    const options = { token: admin.token, body, headers: { 'content-type': 'application/json' } }
    assertProblem(await edge.request('PATCH', `/orgs/${owner.orgId}/quotas`, options), 400, 'malformed-body')
  }
  const nobody = await edge.request('PATCH', `/orgs/${crypto.randomUUID()}/quotas`, {
    token: admin.token,
    json: { weight: 2 },
  })
  assertProblem(nobody, 404, 'not-found')
  assert.match(nobody.body.detail, /There is no organisation/)
  assert.deepEqual(await quotasOf(owner), before)
  assert.deepEqual(await stored(), rows)
})
