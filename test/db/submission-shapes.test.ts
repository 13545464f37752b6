import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
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
    assert.equal(submitJobs(submissions, { known: true }).name.replace('known-', ''), name)
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

for (const run_at of [null, LATER]) {
  test(`a job whose stream is said to be known is stored if it is${run_at ? ', also a delayed one' : ''}`, async () => {
    const submit = async (job: NewJob, known: boolean) => {
      const submissions = [{ ...tenant, jobs: [job] }]
      return readSubmitted(submissions, await database.run(submitJobs(submissions, { known })))
    }
    const [first, second] = [newJob({ run_at }), newJob({ run_at })]
    assert.deepEqual(await submit(first, true), [])
    assert.deepEqual(await database.sql('select from jobs'), [])
    const [made] = await submit(first, false)
    const [again] = await submit(second, true)
    assert.ok(made?.id === first.id && again?.id === second.id)
    assert.deepEqual(
      { ...again, id: null, created_at: null, announced: null },
      { ...made, id: null, created_at: null, announced: null },
    )
    const { eventsOf, statuses } = watchJobs(database.sql)
    assert.deepEqual(await eventsOf(second.id), await eventsOf(first.id))
    const status = run_at ? 'pending' : 'ready'
    assert.deepEqual(await statuses([first.id, second.id]), [status, status])
    assert.deepEqual(await database.sql('select count(*)::int from streams'), [{ count: 1 }])
  })
}

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
    await assert.rejects(submitAll(database.run, [{ ...tenant, jobs: [newJob(), wrong] }]), { code: '23514' })
    assert.deepEqual(await database.sql('select from jobs'), [])
  })
}
