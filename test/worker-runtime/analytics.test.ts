import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { Query, Run } from '../../db/query.ts'
import { createAnalyticsDuties } from '../../worker-runtime/analytics/duties.ts'
import type { Duty } from '../../worker-runtime/duties.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  lead,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, keepLog, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let term: string
before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  tenant = await seedTenant(database.run)
  term = await lead(database.run)
})

const dutyNamed = (name: string, run: Run = database.run): Duty => {
  const duty = createAnalyticsDuties({ run, logger: keepLog().logger }).find((one) => one.name === name)
  assert.ok(duty)
  return duty
}

type Gain = { jobs: number; wait_ms: number; fifo_wait_ms: number }

const gainOf = async (): Promise<Gain | undefined> => {
  const [row] = await database.sql<Gain>(
    `select sum(jobs)::int as jobs, sum(wait_ms) as wait_ms, sum(fifo_wait_ms) as fifo_wait_ms from scheduling_gains
    having count(*) > 0`,
  )
  return row
}

/** Jobs that were ready together and ran one after the other on one slot: seconds that each ran, in the order of starts. */
const runInOrder = async (order: readonly { job: number; ranS: number }[]): Promise<void> => {
  const jobs = order.map((_, n) => newJob({ name: `job ${n}` }))
  const ids = await seedJobs(database.run, tenant, jobs)
  const claimed = await claim(database.run, 'worker-1', 100)
  await end(database.run, ...claimed.map((job) => completed(job)))
  await database.sql(
    `insert into slot_changes (at, slots) values (now() - interval '1 day', 1) on conflict do nothing`,
  )
  let atS = 0
  for (const { job, ranS } of order) {
    atS += ranS
    await database.sql(
      `update executions set at = date_trunc('hour', now()) - interval '2 hours' + $2 * interval '1 second', ran_ms = array[$3::real]
      where job_ids = array[$1::uuid]`,
      [ids[job], atS, ranS * 1_000],
    )
  }
  await database.sql(`update jobs set created_at = date_trunc('hour', now()) - interval '2 hours'`)
}

const untilWeighed = (duty: Duty): Promise<Gain> =>
  waitFor('the gain', async () => {
    await duty.step(term)
    return gainOf()
  })

test('shortest first beats first in, first out by what it saves', async () => {
  // Submitted long, short, short; run short, short, long: 0 + 1 + 2 s of waiting instead of 0 + 100 + 101.
  await runInOrder([
    { job: 1, ranS: 1 },
    { job: 2, ranS: 1 },
    { job: 0, ranS: 100 },
  ])
  const gain = await untilWeighed(dutyNamed('scheduling gain'))
  assert.equal(gain.jobs, 3)
  assert.ok(Math.abs(gain.wait_ms - 3_000) < 5, `${gain.wait_ms}`)
  assert.ok(Math.abs(gain.fifo_wait_ms - 201_000) < 5, `${gain.fifo_wait_ms}`)
})

test('what ran first in, first out gains nothing', async () => {
  await runInOrder([
    { job: 0, ranS: 100 },
    { job: 1, ranS: 1 },
    { job: 2, ranS: 1 },
  ])
  const gain = await untilWeighed(dutyNamed('scheduling gain'))
  assert.ok(Math.abs(gain.wait_ms - 201_000) < 5, `${gain.wait_ms}`)
  assert.ok(Math.abs(gain.fifo_wait_ms - gain.wait_ms) < 5, `${gain.fifo_wait_ms}`)
})

test('while somebody waits a stretch stays open', async () => {
  await runInOrder([{ job: 0, ranS: 1 }])
  await database.sql('update executions set at = now()')
  const [waiting] = await seedJobs(database.run, tenant, [newJob()])
  const duty = dutyNamed('scheduling gain')
  for (let n = 0; n < 3; n++) await duty.step(term)
  assert.equal(await gainOf(), undefined)
  await database.sql('delete from ready_jobs where job_id = $1', [waiting])
  assert.equal((await untilWeighed(duty)).jobs, 1)
})

test('of two that weigh the same stretch one is counted, and none that leads no more', async () => {
  await runInOrder([
    { job: 0, ranS: 2 },
    { job: 1, ranS: 1 },
  ])
  const former = term
  term = await lead(database.run)
  await dutyNamed('scheduling gain').step(former)
  assert.equal(await gainOf(), undefined)
  // Both have read before either stores.
  const store: (() => void)[] = []
  const bothAtOnce: Run = async <Row>(query: Query<Row>): Promise<Row[]> => {
    if (query.name === 'store-gains') {
      await new Promise<void>((resolve) => {
        store.push(resolve)
        if (store.length === 2) for (const go of store) go()
      })
    }
    return database.run(query)
  }
  await waitFor('a stretch', async () => {
    const rows = await database.sql(
      `select from executions where xid >= pg_snapshot_xmin(pg_current_snapshot())`,
    )
    return rows.length === 0
  })
  await Promise.all([
    dutyNamed('scheduling gain', bothAtOnce).step(term),
    dutyNamed('scheduling gain', bothAtOnce).step(term),
  ])
  assert.equal((await gainOf())?.jobs, 2)
})

test('a worker that leads keeps all of it by itself', async () => {
  await clearJobs(database.sql)
  const worker = prepareWorker(database.url, [handle(() => null)], { SMARTQUEUE_WORKER_SLOTS: '3' })
  await worker.start()
  try {
    await seedJobs(
      database.run,
      tenant,
      Array.from({ length: 20 }, () => newJob()),
    )
    const counts = await waitFor('rollups', async () => {
      const [row] = await database.sql<{ submitted: number; completed: number; waited: number }>(
        `select submitted::int, completed::int, waited::int from job_rollups where span = 60 order by completed desc limit 1`,
      )
      return row?.completed === 20 && row
    })
    assert.deepEqual([counts.waited], [20])
    await waitFor('the number of slots', async () => {
      const [row] = await database.sql<{ slots: number }>(
        'select slots from slot_changes order by at desc limit 1',
      )
      return row !== undefined
    })
  } finally {
    await worker.stop()
  }
})
