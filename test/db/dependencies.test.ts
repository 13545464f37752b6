import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type RefusedSubmission, type SubmittedJob, submitJobs } from '../../db/queue/submit.ts'
import { reclaimExpiredLeases } from '../../db/queue/upkeep.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  failed,
  lead,
  misplacedJobs,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  submitAll,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const submit = async (...overrides: Parameters<typeof newJob>[0][]): Promise<[string, ...string[]]> => {
  const [first, ...rest] = await seedJobs(database.run, tenant, overrides.map(newJob))
  assert.ok(first)
  return [first, ...rest]
}
const trySubmit = async (...overrides: Parameters<typeof newJob>[0][]): Promise<RefusedSubmission[]> => {
  const rows = await submitAll(database.run, [{ ...tenant, jobs: overrides.map(newJob) }])
  return rows.filter((row): row is RefusedSubmission => row.id === null)
}
/** Claims all that is ready and ends it; the names, in order of name. */
const runAll = async (how: typeof completed | typeof failed = completed): Promise<string[]> => {
  const claimed = await claim(database.run)
  await end(database.run, ...claimed.map((job) => how(job)))
  return claimed.map(({ name }) => name).sort()
}

test('a chain runs link by link', async () => {
  const [a] = await submit({ name: 'a' })
  const [b] = await submit({ name: 'b', depends_on: [a] })
  const [c] = await submit({ name: 'c', depends_on: [b] })
  assert.deepEqual(await jobs.statuses([a, b, c]), ['ready', 'blocked', 'blocked'])
  assert.deepEqual([await runAll(), await runAll(), await runAll()], [['a'], ['b'], ['c']])
  assert.deepEqual(await jobs.eventsOf(c), ['blocked', 'ready', 'running', 'completed'])
})

test('a diamond in one batch: the last waits for both sides', async () => {
  const [top, left, right, bottom] = [uuidV7(), uuidV7(), uuidV7(), uuidV7()]
  // The order of a batch does not matter.
  await submit(
    { id: bottom, name: 'bottom', depends_on: [left, right] },
    { id: left, name: 'left', depends_on: [top] },
    { id: right, name: 'right', depends_on: [top, top] },
    { id: top, name: 'top' },
  )
  assert.deepEqual(await runAll(), ['top'])
  const [one, other] = await claim(database.run)
  assert.ok(one && other)
  await end(database.run, completed(one))
  assert.equal(await jobs.statusOf(bottom), 'blocked')
  await end(database.run, completed(other))
  assert.deepEqual(await runAll(), ['bottom'])
})

test('parents that complete in one statement are counted together', async () => {
  const parents = await submit({}, {}, {})
  const [child] = await submit({ name: 'child', depends_on: parents })
  const news = await end(database.run, ...(await claim(database.run)).map((job) => completed(job)))
  assert.equal(news.becameReady, 1)
  assert.equal(await jobs.statusOf(child), 'ready')
})

test('two statements that finish the two parents at the same time release the child once', async () => {
  for (let n = 0; n < 20; n++) {
    const parents = await submit({}, {})
    const [child] = await submit({ depends_on: parents })
    const [one, two] = await claim(database.run, 'worker-1', 2)
    assert.ok(one && two)
    await Promise.all([end(database.run, completed(one)), end(database.run, completed(two))])
    assert.deepEqual(await jobs.eventsOf(child), ['blocked', 'ready'])
    await claim(database.run)
  }
})

test('a released child whose run_at has not come is pending', async () => {
  const [parent] = await submit({})
  const run_at = new Date(Date.now() + 3_600_000).toISOString()
  const [child] = await submit({ depends_on: [parent], run_at })
  await runAll()
  assert.equal(await jobs.statusOf(child), 'pending')
  assert.deepEqual(await jobs.eventsOf(child), ['blocked', 'pending'])
})

test('a child of completed parents is ready at once', async () => {
  const [parent] = await submit({})
  await runAll()
  const [child] = await submit({ depends_on: [parent] })
  assert.equal(await jobs.statusOf(child), 'ready')
})

test('a retry of the parent keeps the child blocked', async () => {
  const [parent] = await submit({})
  const [child] = await submit({ depends_on: [parent] })
  const [job] = await claim(database.run)
  assert.ok(job)
  await end(database.run, retrying(job))
  assert.deepEqual(await jobs.statuses([parent, child]), ['retrying', 'blocked'])
})

test('a failed parent fails its dependents all the way down, each with the reason', async () => {
  const [a] = await submit({ name: 'a' })
  const [bystander] = await submit({ name: 'bystander', priority: 'low' })
  const [b] = await submit({ name: 'b', depends_on: [a, bystander] })
  const [c] = await submit({ name: 'c', depends_on: [b] })
  const [d] = await submit({ name: 'd', depends_on: [c, a] })
  const [job] = await claim(database.run, 'worker-1', 1)
  assert.ok(job)
  await end(database.run, failed(job))
  assert.deepEqual(await jobs.statuses([a, b, c, d]), ['failed', 'failed', 'failed', 'failed'])
  assert.deepEqual((await jobs.look(b)).error, {
    code: 'dependency_failed',
    message: `Job ${a}, which this job depends on, has failed or was cancelled.`,
  })
  assert.match((await jobs.look(c)).error?.message ?? '', new RegExp(b))
  for (const id of [b, c, d]) {
    assert.deepEqual(await jobs.eventsOf(id), ['blocked', 'failed: dependency_failed'])
  }
  assert.deepEqual(await runAll(), ['bystander'])
  assert.deepEqual(await misplacedJobs(database.sql), [])
})

test('a parent that is lost for the last time fails its dependents too', async () => {
  const term = await lead(database.run)
  const [parent] = await submit({ max_attempts: 1 })
  const [child] = await submit({ depends_on: [parent] })
  await claim(database.run)
  await database.sql('update leases set expires_at = now()')
  await database.run(reclaimExpiredLeases(term, 10))
  assert.deepEqual(await jobs.statuses([parent, child]), ['failed', 'failed'])
})

test('a job that is told to wait stays blocked when its parent fails, and so does what hangs on it', async () => {
  const [parent] = await submit({})
  const [child] = await submit({ depends_on: [parent], on_parent_failure: 'wait' })
  const [grandchild] = await submit({ depends_on: [child] })
  await runAll(failed)
  assert.deepEqual(await jobs.statuses([parent, child, grandchild]), ['failed', 'blocked', 'blocked'])
})

test('an unknown parent refuses the whole submission and names both ends', async () => {
  const nobody = uuidV7()
  const child = uuidV7()
  const refusals = await trySubmit({}, { id: child, depends_on: [nobody] })
  assert.partialDeepStrictEqual(refusals, [{ refusal: 'unknown_parent', child_id: child, parent_id: nobody }])
  assert.equal(refusals.length, 1)
  assert.deepEqual(await database.sql('select id from jobs'), [])
  assert.deepEqual(await database.sql('select job_id from job_dependencies, blocked_jobs'), [])
})

test('a job of another organisation is an unknown parent', async () => {
  const stranger = await seedTenant(database.run)
  const [foreign] = await seedJobs(database.run, stranger, [newJob()])
  assert.ok(foreign)
  const [refusal] = await trySubmit({ depends_on: [foreign] })
  assert.equal(refusal?.refusal, 'unknown_parent')
})

test('a member of another submission is an unknown parent, also in the same statement', async () => {
  const parent = newJob()
  const child = newJob({ depends_on: [parent.id] })
  const rows = await submitAll(database.run, [
    { ...tenant, jobs: [parent] },
    { ...tenant, jobs: [child] },
  ])
  const [accepted] = rows.filter((row): row is SubmittedJob => row.id !== null)
  const [refused] = rows.filter((row): row is RefusedSubmission => row.id === null)
  assert.deepEqual([accepted?.id, refused?.submission, refused?.refusal], [parent.id, 2, 'unknown_parent'])
})

test('a failed parent refuses the submission, unless the child waits', async () => {
  const [parent] = await submit({})
  await runAll(failed)
  const [refusal] = await trySubmit({ depends_on: [parent] }, {})
  assert.equal(refusal?.refusal, 'failed_parent')
  const [patient] = await submit({ depends_on: [parent], on_parent_failure: 'wait' })
  assert.equal(await jobs.statusOf(patient), 'blocked')
  assert.equal((await database.sql('select id from jobs')).length, 2)
})

test('parents in every state are found', async () => {
  const run_at = new Date(Date.now() + 3_600_000).toISOString()
  const [done] = await submit({})
  await runAll()
  const [held] = await submit({})
  await claim(database.run)
  const [ready] = await submit({})
  const [pending] = await submit({ run_at })
  const [blocked] = await submit({ depends_on: [ready] })
  const [child] = await submit({ depends_on: [done, held, ready, pending, blocked] })
  const [row] = await database.sql('select remaining from blocked_jobs where job_id = $1', [child])
  assert.deepEqual(row, { remaining: 4 }, 'all but the completed one')
})

/** True of no snapshot: a child stands among the ready and one of its parents has not completed. */
const RELEASED_EARLY = `
  select r.job_id
  from ready_jobs r
  join job_dependencies d on d.child_id = r.job_id
  left join finished_jobs p on p.job_id = d.parent_id and p.state = 'completed'
  where p.job_id is null`

/** Submits children of a job while it is being finished, again and again, from many connections at once. */
const race = async (rounds: number, finish: typeof completed | typeof failed) => {
  const children: string[] = []
  const refused: RefusedSubmission[] = []
  const play = async (): Promise<void> => {
    const [parent] = await submit({})
    const { claimed } = await exchange(database.run, { claim: { limit: 1 } })
    const child = newJob({ type: 'child', depends_on: [parent] })
    const [rows] = await Promise.all([
      submitAll(database.run, [{ ...tenant, jobs: [child] }]),
      end(database.run, ...claimed.map((job) => finish(job))),
    ])
    const refusals = rows.filter((row): row is RefusedSubmission => row.id === null)
    if (refusals.length === 0) children.push(child.id)
    refused.push(...refusals)
    assert.deepEqual(await database.sql(RELEASED_EARLY), [])
  }
  const lane = async () => {
    for (let n = 0; n < rounds / 5; n++) await play()
  }
  await Promise.all(Array.from({ length: 5 }, lane))
  // Players take whatever job is ready, so a few parents may be left.
  for (;;) if ((await runAll(finish)).length === 0) break
  return { children, refused }
}

test('a child that comes while its parent completes is released, always', async () => {
  const { children, refused } = await race(200, completed)
  assert.deepEqual(refused, [])
  assert.deepEqual([...new Set(await jobs.statuses(children))], ['ready'])
  assert.deepEqual(await misplacedJobs(database.sql), [])
  const seen = await database.sql<{ states: string }>(
    `select distinct string_agg(e.state::text, ' ' order by e.id) as states
    from job_events e join job_dependencies d on d.child_id = e.job_id group by e.job_id order by 1`,
  )
  assert.ok(
    seen.every(({ states }) => states === 'ready' || states === 'blocked ready'),
    JSON.stringify(seen),
  )
})

test('a child that comes while its parent fails is refused or fails with it, always', async () => {
  const { children, refused } = await race(200, failed)
  assert.equal(children.length + refused.length, 200)
  assert.ok(refused.every(({ refusal }) => refusal === 'failed_parent'))
  if (children.length > 0) {
    assert.deepEqual([...new Set(await jobs.statuses(children))], ['failed'])
  }
  assert.deepEqual(await misplacedJobs(database.sql), [])
})

test('the answer grows with the jobs, and not with their square', async () => {
  const parent = newJob()
  const children = Array.from({ length: 50 }, (_, n) =>
    newJob({ name: `child ${n}`, depends_on: [parent.id] }),
  )
  const submitting = submitJobs([{ ...tenant, jobs: [parent, ...children] }])
  const answers = await database.run(submitting)
  const ids = answers.flatMap(({ answer }) => answer.flatMap(({ blocked = [] }) => blocked))
  assert.deepEqual(ids.toSorted(), children.map(({ id }) => id).toSorted())
  assert.deepEqual(
    submitting.read(answers).rows.map((row) => (row.id === null ? null : row.status)),
    ['ready', ...children.map(() => 'blocked')],
  )
})
