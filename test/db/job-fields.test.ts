import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  areAlike,
  JOB_FIELDS,
  type JobField,
  KIND_FIELDS,
  type KindFieldName,
  type NewJob,
} from '../../db/queue/job-fields.ts'
import { newJob as newJobSchema } from '../../functions/jobs/new-job.ts'
import { job as jobSchema } from '../../functions/jobs/schemas.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newJob, seedTenant, submitAll, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())

const FIELDS = Object.entries(JOB_FIELDS) as [keyof NewJob, JobField][]

const columnsOf = async (relation: string): Promise<string[]> => {
  const rows = await database.sql<{ column_name: string }>(
    `select column_name from information_schema.columns where table_schema = 'smartqueue' and table_name = $1`,
    [relation],
  )
  return rows.map(({ column_name }) => column_name)
}

/** Columns that are not fields of a new job, but made from them or from whoever submits. */
const DERIVED = ['org_id', 'created_by', 'series_id', 'created_at']
/** A prediction is stored in parts; dependencies have a table of their own. */
const PREDICTED = [
  ...['predicted_ms', 'predicted_p90_ms', 'predicted_p99_ms', 'prediction_source', 'model_version'],
  ...['residual_log', 'promised_wait_ms', 'sample'],
]

test('every field has a column, and every column is a field or derived from one', async () => {
  const stored = FIELDS.map(([name]) => name).filter((name) => name !== 'prediction' && name !== 'depends_on')
  assert.deepEqual((await columnsOf('jobs')).toSorted(), [...stored, ...DERIVED, ...PREDICTED].toSorted())
})

for (const [name, kind] of [
  ['submit_jobs', 'v_job'],
  ['submit_mixed', 'k'],
]) {
  test(`${name} stores every column`, async () => {
    const [row] = await database.sql<{ body: string }>(
      `select prosrc as body from pg_proc where oid = 'smartqueue.${name}'::regproc`,
    )
    const [, inserted = '', selected = ''] =
      /insert into jobs \(([^)]*)\)\s+select([^;]*?)\s+from /.exec(row?.body ?? '') ?? []
    const columns = inserted.split(',').map((column) => column.trim())
    const expected = (await columnsOf('jobs')).filter((column) => column !== 'created_at')
    assert.deepEqual(columns.toSorted(), expected.toSorted())
    for (const field of KIND_FIELDS) {
      if (field !== 'prediction') assert.match(selected, new RegExp(`\\b${kind}\\.${field}\\b`), field)
    }
  })
}

test('what the API shows is in the view of a job and in its schema', async () => {
  const shown = FIELDS.flatMap(([name, { view = name }]) => (view === null ? [] : [{ name, view }]))
  const columns = [...(await columnsOf('job_overview')), 'depends_on']
  for (const { name, view } of shown) {
    assert.ok(columns.includes(name), `job_overview has ${name}`)
    assert.ok(isInSchema(jobSchema, view), `the schema of a job has ${view}`)
  }
})

test('what a client may send, it is shown again', () => {
  const paths = FIELDS.flatMap(([name, { view = name }]) => (view === null ? [] : [view.split('.')[0]]))
  const own = Object.keys(newJobSchema.shape).filter((name) => name !== 'idempotency_key')
  for (const name of own) assert.ok(paths.includes(name), name)
})

type Shaped = { shape?: Record<string, Shaped> }

const isInSchema = (schema: unknown, path: string): boolean => {
  let found: Shaped | undefined = schema as Shaped
  for (const name of path.split('.')) found = found?.shape?.[name]
  return found !== undefined
}

const OTHER: { [Name in KindFieldName]: NewJob[Name] } = {
  type: 'other',
  name: 'another job',
  priority: 'high',
  tags: ['tag'],
  timeout_seconds: 7,
  max_attempts: 7,
  initial_delay_seconds: 7,
  backoff_multiplier: 7,
  cpu_units: 7,
  memory_mb: 7,
  run_at: '2999-01-01T00:00:00.000Z',
  deadline: '2999-01-01T00:00:00.000Z',
  on_parent_failure: 'wait',
  callback_url: 'https://example.com/',
  fairness_key: 'customer-42',
  triggered_by: { kind: 'callback', job_id: newJob().id, event: 'job.failed' },
  rank_base: 7,
  rank_slope: 0.5,
  prediction: {
    ...{ p50Log: 5, p90Log: 6, p99Log: 7, source: 'lstm', modelVersion: 7, spreadLog: 1, residualLog: 0.5 },
    ...{ sample: null, promisedWaitMs: null },
  },
}

for (const name of KIND_FIELDS) {
  test(`two jobs that differ only in ${name} stay two`, async () => {
    const jobs = [newJob(), newJob({ [name]: OTHER[name] })] as const
    assert.ok(!areAlike(...jobs))
    await submitAll(database.run, [{ ...tenant, jobs }])
    const column = name === 'prediction' ? 'predicted_ms' : name
    const rows = await database.sql(
      `select distinct to_jsonb(j) -> $2 as value from smartqueue.jobs j where id = any ($1)`,
      [jobs.map(({ id }) => id), column],
    )
    assert.equal(rows.length, 2)
  })
}
