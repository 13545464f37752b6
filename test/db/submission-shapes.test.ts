import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { submitLoneJob } from '../../db/queries/lone-submission.ts'
import { type NewJob, readSubmitted, type SubmittedJob, submitJobs } from '../../db/queries/submission.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  clearJobs,
  misplacedJobs,
  newJob,
  seedTenant,
  submitAll,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const LATER = '2999-01-01T00:00:00.000Z'

/** Thirty jobs; every third has `other`, so that the kinds are mixed up. */
const mixed = (other: Partial<NewJob>): NewJob[] =>
  Array.from({ length: 30 }, (_, n) => newJob({ payload: { n }, ...(n % 3 === 0 && other) }))

const parent = newJob({ name: 'parent' })
const SHAPES: { name: string; jobs: NewJob[]; states: string[] }[] = [
  { name: 'submit-alike-jobs', jobs: mixed({}), states: ['ready', 'ready', 'ready'] },
  { name: 'submit-jobs', jobs: mixed({ name: 'other' }), states: ['ready', 'ready', 'ready'] },
  {
    name: 'submit-delayed-alike-jobs',
    jobs: mixed({}).map((job) => ({ ...job, run_at: LATER })),
    states: ['pending', 'pending', 'pending'],
  },
  { name: 'submit-delayed-jobs', jobs: mixed({ run_at: LATER }), states: ['pending', 'ready', 'ready'] },
  {
    name: 'submit-dependent-jobs',
    jobs: [parent, ...mixed({ depends_on: [parent.id] })],
    states: ['ready', 'blocked', 'ready'],
  },
  {
    name: 'submit-dependent-delayed-jobs',
    jobs: [{ ...parent, run_at: LATER }, ...mixed({ depends_on: [parent.id], run_at: LATER })],
    states: ['pending', 'blocked', 'ready'],
  },
]

for (const { name, jobs, states } of SHAPES) {
  test(`${name} stores each job once, in the order given`, async () => {
    const submissions = [{ ...tenant, jobs }]
    assert.equal(submitJobs(submissions).name, name)
    const rows = (await submitAll(database.run, submissions)) as SubmittedJob[]
    assert.deepEqual(
      rows.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
    assert.deepEqual(
      rows.slice(0, 3).map(({ status }) => status),
      states,
    )
    const { statuses, eventsOf } = watchJobs(database.sql)
    assert.deepEqual(
      await statuses(jobs.map(({ id }) => id)),
      rows.map(({ status }) => status),
    )
    for (const { id, status } of rows.slice(0, 3)) assert.deepEqual(await eventsOf(id), [status])
    assert.deepEqual(await misplacedJobs(database.sql), [])
    const payloads = await database.sql<{ id: string; n: number }>(
      `select id, (payload ->> 'n')::int as n from jobs where name <> 'parent'`,
    )
    const numbers = new Map(payloads.map(({ id, n }) => [id, n]))
    assert.ok(jobs.every(({ id, payload }) => numbers.get(id) === payload.n))
    const ready = await database.sql<{ job_id: string }>('select job_id from ready_jobs order by key')
    const expected = rows.filter(({ status }) => status === 'ready').map(({ id }) => id)
    assert.deepEqual(
      ready.map(({ job_id }) => job_id),
      expected,
    )
  })
}

const SPECIAL = { tags: ['a,b', 'c'], timeout_seconds: 9, priority: 'high', payload: { n: 1 } } as const
const LONE: Partial<NewJob>[] = [
  {},
  { run_at: LATER },
  { deadline: '2020-01-01T00:00:00Z' },
  { ...SPECIAL, tags: [...SPECIAL.tags] },
]

for (const overrides of LONE) {
  const what = Object.keys(overrides).join(', ') || 'nothing special'
  test(`a lone job of a stream that exists becomes what it would be among many: ${what}`, async () => {
    const submitAlone = async (job: NewJob) =>
      readSubmitted(
        [{ ...tenant, jobs: [job] }],
        await database.run(submitLoneJob(tenant.orgId, tenant.userId, job)),
      )
    const [one, other] = [newJob(overrides), newJob(overrides)]
    assert.deepEqual(await submitAlone(one), [], 'the stream does not exist yet')
    assert.deepEqual(await database.sql('select from jobs'), [])
    const [among] = await submitAll(database.run, [{ ...tenant, jobs: [one] }])
    const [alone] = await submitAlone(other)
    assert.ok(among?.id === one.id && alone?.id === other.id)
    const its = { id: null, created_at: null, announced: null }
    assert.deepEqual({ ...alone, ...its }, { ...among, ...its })
    const { eventsOf, look } = watchJobs(database.sql)
    assert.deepEqual(await eventsOf(other.id), await eventsOf(one.id))
    assert.deepEqual({ ...(await look(other.id)), ...its }, { ...(await look(one.id)), ...its })
    const queued = await database.sql(
      `select lane, attempts, cpu_units, memory_mb, predicted_ms, start_by, suspect from ready_jobs
      union all select null, attempts, null, null, null, wake_at, null from waiting_jobs`,
    )
    assert.equal(queued.length, 2)
    assert.deepEqual(queued[0], queued[1])
  })
}

test('a lone job of someone who is not a member is neither stored nor answered', async () => {
  await submitAll(database.run, [{ ...tenant, jobs: [newJob()] }])
  assert.deepEqual(await database.run(submitLoneJob(tenant.orgId, crypto.randomUUID(), newJob())), [])
  assert.equal((await database.sql('select from jobs')).length, 1)
})

test('jobs that miss their deadline are named in the events, the others are not', async () => {
  const late = newJob({ deadline: '2020-01-01T00:00:00Z' })
  const fine = newJob()
  await submitAll(database.run, [{ ...tenant, jobs: [fine, late] }])
  const { eventsOf } = watchJobs(database.sql)
  assert.deepEqual(await eventsOf(late.id), ['ready: deadline_at_risk'])
  assert.deepEqual(await eventsOf(fine.id), ['ready'])
})

for (const [field, value] of Object.entries({
  name: '',
  priority: 'urgent',
  timeout_seconds: 0,
  max_attempts: 0,
  initial_delay_seconds: -1,
  backoff_multiplier: 0.5,
  cpu_units: -1,
  memory_mb: -1,
  on_parent_failure: 'shrug',
  payload: [],
})) {
  test(`the database refuses a job with a wrong ${field}, whatever let it through`, async () => {
    const wrong = { ...newJob(), [field]: value } as NewJob
    if (field !== 'name') await submitAll(database.run, [{ ...tenant, jobs: [newJob()] }])
    await assert.rejects(database.run(submitLoneJob(tenant.orgId, tenant.userId, wrong)), { code: '23514' })
    await clearJobs(database.sql)
    await assert.rejects(submitAll(database.run, [{ ...tenant, jobs: [newJob(), wrong] }]), { code: '23514' })
    assert.deepEqual(await database.sql('select from jobs'), [])
  })
}
