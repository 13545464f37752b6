import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pg from 'pg'
import { JOBS_READY } from '../../db/queries/notifications.ts'
import type { Query, Run } from '../../db/query.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { createSubmitter } from '../../functions/jobs/submitter.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newJob, seedTenant, type Tenant } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let tenant: Tenant
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())

const submission = (...jobs: NewJob[]) => ({ ...tenant, jobs })
const isStored = async (job: NewJob) =>
  (await database.sql('select id from jobs where id = $1', [job.id])).length === 1

const isSubmission = ({ name }: Query<unknown>): boolean => name === 'submit-jobs'

/** Counts statements, and lets a test hold them back or lose their answers. */
const spyOn = (act: (query: Query<unknown>, nth: number) => Promise<void> = async () => {}) => {
  const sent: string[] = []
  const run: Run = async (query) => {
    if (isSubmission(query)) sent.push(query.name)
    const nth = sent.length
    const rows = await database.run(query)
    if (isSubmission(query)) await act(query, nth)
    return rows
  }
  return { run, sent }
}

test('what arrives while a statement is on its way goes together in the next', async () => {
  const { run, sent } = spyOn()
  const { submit } = createSubmitter({ run, lanes: 1 })
  const jobs = Array.from({ length: 50 }, () => newJob())
  const [first, ...rest] = jobs.map((job) => submission(job))
  assert.ok(first)
  const early = submit(first)
  await nextTurn()
  const answers = await Promise.all([early, ...rest.map((one) => submit(one))])
  assert.deepEqual(
    answers.map((rows) => rows.map(({ id }) => id)),
    jobs.map(({ id }) => [id]),
  )
  assert.equal(sent.length, 2)
})

test('a group that cannot be formed rejects its sender, and the others continue', async () => {
  const { submit } = createSubmitter({
    run: database.run,
    lanes: 1,
    patience: { turnMs: 50, answerMs: 10_000 },
  })
  const first = submit(submission(newJob()))
  await nextTurn()
  const broken = submit(submission(newJob({ payload: { size: 1n } })))
  const job = newJob()
  const last = submit(submission(job))
  await assert.rejects(broken, TypeError)
  await Promise.all([first, last])
  assert.ok(await isStored(job))
})

test('a statement carries at most 500 jobs', async () => {
  const { run, sent } = spyOn()
  const { submit } = createSubmitter({ run, lanes: 1 })
  const batch = () => submit(submission(...Array.from({ length: 200 }, () => newJob())))
  const answers = await Promise.all([batch(), batch(), batch(), batch()])
  assert.deepEqual(
    answers.map((rows) => rows.length),
    [200, 200, 200, 200],
  )
  assert.equal(sent.length, 2)
})

test('one that Postgres refuses takes no other with it', async () => {
  const { submit } = createSubmitter({ run: database.run, lanes: 1 })
  const jobs = Array.from({ length: 20 }, (_, n) => newJob({ name: n === 13 ? '' : 'fine' }))
  const settled = await Promise.allSettled(jobs.map((job) => submit(submission(job))))
  assert.deepEqual(
    settled.flatMap(({ status }, n) => (status === 'rejected' ? [n] : [])),
    [13],
  )
  const stored = await Promise.all(jobs.map(isStored))
  assert.equal(stored.filter(Boolean).length, 19)
})

test('when the database does not answer, all are told, and the next is served', async () => {
  let broken = true
  const run: Run = async (query) => {
    if (broken) throw new Error('connection lost')
    return database.run(query)
  }
  const { submit } = createSubmitter({ run, lanes: 1 })
  const settled = await Promise.allSettled([submit(submission(newJob())), submit(submission(newJob()))])
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  broken = false
  assert.equal((await submit(submission(newJob()))).length, 1)
})

test('a turn that never comes is taken', async () => {
  const forever = new Promise<void>(() => {})
  const { run } = spyOn((_, nth) => (nth === 1 ? forever : Promise.resolve()))
  const { submit } = createSubmitter({ run, lanes: 1, patience: { turnMs: 20, answerMs: 20 } })
  void submit(submission(newJob()))
  const [second, third] = [newJob(), newJob()]
  const answers = await Promise.all([submit(submission(second)), submit(submission(third))])
  assert.deepEqual([answers[0]?.[0]?.id, answers[1]?.[0]?.id], [second.id, third.id])
})

test('an answer that never comes is asked for, and nothing is stored twice', async () => {
  const forever = new Promise<void>(() => {})
  const { run, sent } = spyOn((_, nth) => (nth === 2 ? forever : Promise.resolve()))
  const { submit } = createSubmitter({ run, lanes: 1, patience: { turnMs: 500, answerMs: 500 } })
  const first = submit(submission(newJob()))
  await nextTurn()
  // The second sends for the third, and dies with the answer.
  void submit(submission(newJob()))
  const third = newJob({ run_at: '2999-01-01T00:00:00Z', deadline: '2999-01-01T00:00:01Z' })
  const [row] = await submit(submission(third))
  await first
  assert.equal(sent.length, 2)
  assert.ok(row && row.id !== null)
  assert.deepEqual([row.id, row.status, row.deadline_at_risk, row.submission], [third.id, 'pending', true, 1])
})

const listen = async () => {
  const listener = new pg.Client(database.url)
  await listener.connect()
  const heard: string[] = []
  listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
  await listener.query(`listen ${JOBS_READY}`)
  return { listener, heard }
}

const lastAnnounced = (seconds: number): Promise<unknown> =>
  database.sql(`select setval('announced_ms', ((extract(epoch from now()) + $1) * 1000)::bigint)`, [seconds])

test('a lone job on a quiet system is announced by its own commit, a later one by nobody', async () => {
  const { listener, heard } = await listen()
  const names: string[] = []
  const run: Run = (query) => {
    names.push(query.name)
    return database.run(query)
  }
  const { submit } = createSubmitter({ run })
  await lastAnnounced(-1)
  await submit(submission(newJob({ type: 'lone' })))
  await lastAnnounced(-1)
  await submit(submission(newJob({ type: 'later', run_at: '2999-01-01T00:00:00Z' })))
  await waitFor('the notification', () => heard.includes('lone'))
  assert.deepEqual(heard, ['lone'])
  assert.deepEqual(names, ['submit-jobs', 'submit-jobs'])
  await listener.end()
})

test('while others are submitting, workers are told after the commit', async () => {
  const { listener, heard } = await listen()
  const held: Promise<unknown>[] = []
  const names: string[] = []
  const run: Run = (query) => {
    names.push(query.name)
    return database.run(query)
  }
  const { submit } = createSubmitter({ run })
  // The statement will run between these two moments.
  await lastAnnounced(0.9)
  await submit(submission(newJob({ type: 'busy' })), (work) => held.push(work))
  await Promise.all(held)
  await waitFor('the notification', () => heard.includes('busy'))
  assert.deepEqual(names, ['submit-jobs', 'notify'])
  await listener.end()
})

test('workers are told of types that became ready, once for many', async () => {
  const { listener, heard } = await listen()
  const held: Promise<unknown>[] = []
  const { submit } = createSubmitter({ run: database.run, lanes: 1 })
  const later = newJob({ type: 'later', run_at: '2999-01-01T00:00:00Z' })
  const jobs = [...Array.from({ length: 100 }, () => newJob()), newJob({ type: 'other' }), later]
  await Promise.all(jobs.map((job) => submit(submission(job), (work) => held.push(work))))
  await Promise.all(held)
  await waitFor('both types', () => heard.includes('test') && heard.includes('other'))
  assert.ok(heard.length <= 6, `${heard.length} notifications`)
  assert.ok(!heard.includes('later'))
  await listener.end()
})

test('a submission whose organisation is busy is stored as soon as it can be, and keeps nobody waiting', async () => {
  const held = await seedTenant(database.run)
  const holder = new pg.Client(database.url)
  await holder.connect()
  await holder.query('begin')
  await holder.query('select from smartqueue.quota_states where org_id = $1 for update', [held.orgId])
  const { submit } = createSubmitter({ run: database.run, lanes: 1 })
  const [busy, free] = [newJob(), newJob()]
  const late = submit({ ...held, jobs: [busy] })
  const [other] = await submit(submission(free))
  assert.equal(other?.id, free.id)
  await holder.query('commit')
  const [stored] = await late
  assert.equal(stored?.id, busy.id)
  await holder.end()
})

test('someone who is not a member is refused', async () => {
  const { submit } = createSubmitter({ run: database.run })
  const stranger = { ...submission(newJob()), userId: crypto.randomUUID() }
  const [refused] = await submit(stranger)
  assert.ok(refused?.id === null && refused.refusal === 'not_member')
})
