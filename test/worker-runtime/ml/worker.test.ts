import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { JOBS_CANCELLED, notify } from '../../../db/queries/notifications.ts'
import { createHandlers } from '../../../worker-runtime/handlers/index.ts'
import type { MlResult } from '../../../worker-runtime/handlers/ml/result.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { cancelHeldJob, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../../support/jobs.ts'
import { inline, noisySeason } from '../../support/ml.ts'
import { documentedCommand } from '../../support/ml-docs.ts'
import { waitFor } from '../../support/wait-for.ts'
import { prepareWorker } from '../../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
let worker: ReturnType<typeof prepareWorker>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
  worker = prepareWorker(database.url, createHandlers({ shellAllow: undefined }), {
    SMARTQUEUE_CONNECTIONS: JSON.stringify({ warehouse: database.url }),
  })
  await worker.start()
})
after(async () => {
  await worker.stop()
  await database.drop()
})

const submit = async (payload: object): Promise<string> => {
  const [id] = await seedJobs(database.run, tenant, [newJob({ type: 'ml', payload: payload as never })])
  return String(id)
}
const resultOf = async (id: string): Promise<MlResult> =>
  (await jobs.untilStatus(id, 'completed')).result as MlResult

test('the command of docs/ml.md is answered with next week', async () => {
  const id = await submit(documentedCommand().payload)
  const result = await resultOf(id)
  assert.deepEqual([result.source, result.season, result.n, result.forecast.length], ['lstm', 7, 84, 7])
  const [saturday, sunday] = [result.forecast[5]?.p50 ?? 0, result.forecast[6]?.p50 ?? 0]
  for (const { p50 } of result.forecast.slice(0, 5)) assert.ok(saturday > p50 && sunday > p50)
  const { progress, progress_note } = await jobs.look(id)
  assert.equal(progress, 1)
  const lines = await database.sql<{ message: string }>(
    'select message from job_logs where job_id = $1 order by id',
    [id],
  )
  assert.equal(lines.length, 2)
  assert.match(lines[0]?.message ?? '', /^84 values, 14 of them held out; a season of 7;/)
  assert.match(lines[1]?.message ?? '', /% less\): the forecast is the network's$/)
  assert.equal(progress_note, lines[1]?.message)
})

test('a series is read from a database that the operator has named', async () => {
  const values = noisySeason(70)
  await database.sql('create table sales (day int, amount numeric)')
  await database.sql('insert into sales select n, v from unnest($1::float[]) with ordinality as s (v, n)', [
    values,
  ])
  const series = {
    from: 'postgres',
    connection: 'warehouse',
    query: 'select day, amount from sales where day <= $1::int order by day;',
    params: [70],
    column: 'amount',
  }
  const settings = { horizon: 3, epochs: 1 }
  const [read, given] = await Promise.all([
    submit({ series, ...settings }),
    submit({ series: inline(values), ...settings }),
  ])
  assert.deepEqual((await resultOf(read)).forecast, (await resultOf(given)).forecast)

  const stranger = await submit({ series: { ...series, connection: 'elsewhere' }, ...settings })
  const mistaken = await submit({ series: { ...series, query: 'select amuont from sales' }, ...settings })
  const errors = await Promise.all([stranger, mistaken].map((id) => jobs.untilStatus(id, 'failed')))
  assert.deepEqual(
    errors.map(({ error, attempts }) => [error?.code, attempts]),
    [
      ['unknown_connection', 1],
      ['database_error', 1],
    ],
  )
})

test('a job that trains is cancelled within a second', async () => {
  const id = await submit({
    series: inline(noisySeason(3_000)),
    horizon: 24,
    season: 12,
    epochs: 1_000,
  })
  await waitFor('an epoch', async () => ((await jobs.look(id)).progress ?? 0) > 0)
  await cancelHeldJob(database.sql, id)
  const cancelledAt = performance.now()
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  await waitFor('the end of it', () => worker.log.some(({ message }) => message === 'job cancelled'))
  assert.ok(performance.now() - cancelledAt < 1_000, `${performance.now() - cancelledAt} ms`)
})
