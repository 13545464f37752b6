import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { readMigrations } from '../../db/migrator.ts'
import { claimSuspect, readLoneJob } from '../../db/queries/lone-claim.ts'
import { SCHEMA_VERSION } from '../../db/queries/schema-version.ts'
import { reclaimExpiredLeases } from '../../db/queries/upkeep.ts'
import { migrateDatabase } from '../../worker-runtime/migrate.ts'
import { describeSchema } from '../support/catalog.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { claim, completed, end, lead, misplacedJobs } from '../support/jobs.ts'

const databases: TestDatabase[] = []
const emptyDatabase = async (): Promise<TestDatabase> => {
  const database = await createTestDatabase({ empty: true })
  databases.push(database)
  return database
}
after(() => Promise.all(databases.map((database) => database.drop())))

test('schema.sql is what the migrations make', async () => {
  const [migrated, written] = await Promise.all([emptyDatabase(), emptyDatabase()])
  await migrateDatabase(migrated.url)
  await written.sql(await readFile(new URL('../../db/schema.sql', import.meta.url), 'utf8'))
  const expected = await describeSchema(migrated)
  assert.ok(expected.length > 50, 'the catalog was read')
  assert.deepEqual(await describeSchema(written), expected)
})

test('two starters at the same time apply each migration once', async () => {
  const database = await emptyDatabase()
  const reports = await Promise.all(Array.from({ length: 4 }, () => migrateDatabase(database.url)))
  const names = (await readMigrations()).map(({ name }) => name)
  assert.deepEqual(reports.flatMap(({ applied }) => applied).sort(), names)
  const rows = await database.sql('select name from schema_migrations order by version')
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  )
})

test('a second run applies nothing', async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  assert.deepEqual(await migrateDatabase(database.url), { version: SCHEMA_VERSION, applied: [] })
})

test('a migration that was edited after it was applied is refused by name', async () => {
  const database = await emptyDatabase()
  await migrateDatabase(database.url)
  await database.sql("update schema_migrations set checksum = 'other' where version = 1")
  await assert.rejects(
    migrateDatabase(database.url),
    /0001_accounts was changed after this database applied it/,
  )
})

test('the code asks for the newest migration', async () => {
  assert.equal((await readMigrations()).at(-1)?.version, SCHEMA_VERSION)
})

/** The schema of an earlier release, as its migrator left it. */
const migrateTo = async (database: TestDatabase, version: number): Promise<void> => {
  await database.sql(`
    create table schema_migrations (
      version integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now()
    )`)
  for (const migration of (await readMigrations()).slice(0, version)) {
    await database.sql(migration.sql)
    await database.sql('insert into schema_migrations (version, name, checksum) values ($1, $2, $3)', [
      migration.version,
      migration.name,
      migration.checksum,
    ])
  }
}

const id = (n: number): string => `019a8000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** A job in each of the tables that 0002 made. */
const RELEASE_BEFORE = `
  insert into orgs (id, name) values ('${id(1)}', 'org');
  insert into users (id, username, password_hash) values ('${id(2)}', 'ada', 'x');
  insert into memberships (org_id, user_id, role) values ('${id(1)}', '${id(2)}', 'org_admin');
  insert into job_types (type, payload_schema) values ('test', '{}');
  insert into jobs (
    id, org_id, created_by, type, name, payload, priority, rank, tags, timeout_seconds, max_attempts,
    initial_delay_seconds, backoff_multiplier, run_at, created_at
  )
  select
    ('019a8000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '${id(1)}', '${id(2)}', 'test', 'name ' || n % 2,
    jsonb_build_object('n', n), 'high', -2.0794415416798357, array['tag'], n, 3, 1.5, 2, null, '2026-01-01'
  from generate_series(11, 18) n;
  insert into waiting_jobs (job_id, org_id, state, attempts, wake_at, error) values
    ('${id(11)}', '${id(1)}', 'pending', 0, '2999-01-01', null),
    ('${id(12)}', '${id(1)}', 'retrying', 1, '2999-01-01', '{"code": "c", "message": "m"}');
  insert into ready_jobs (job_id, org_id, type, rank, attempts) values
    ('${id(14)}', '${id(1)}', 'test', -2.0794415416798357, 0), ('${id(13)}', '${id(1)}', 'test', -2.0794415416798357, 2);
  insert into leases (job_id, org_id, worker_id, token, attempt, started_at, expires_at) values
    ('${id(15)}', '${id(1)}', 'w', gen_random_uuid(), 2, '2026-01-02Z', '2026-01-03Z');
  insert into finished_jobs (job_id, org_id, state, attempts, result, error, worker_id, started_at, finished_at) values
    ('${id(16)}', '${id(1)}', 'completed', 2, '{"ok": true}', null, 'w', '2026-01-02Z', '2026-01-03Z'),
    ('${id(17)}', '${id(1)}', 'failed', 3, null, '{"code": "c", "message": "m 1"}', 'w', '2026-01-02Z', '2026-01-03Z'),
    ('${id(18)}', '${id(1)}', 'failed', 1, null, '{"code": "c", "message": "m 22"}', 'w', '2026-01-02Z', '2026-01-03Z');
  insert into attempts (job_id, org_id, attempt, outcome, error, worker_id, started_at, finished_at) values
    ('${id(12)}', '${id(1)}', 1, 'failed', '{"code": "c", "message": "m"}', 'w', '2026-01-02Z', '2026-01-03Z'),
    ('${id(15)}', '${id(1)}', 1, 'lost', null, 'w', '2026-01-02Z', '2026-01-03Z'),
    ('${id(16)}', '${id(1)}', 1, 'failed', '{"code": "c", "message": "m"}', 'w', '2026-01-02Z', '2026-01-03Z'),
    ('${id(16)}', '${id(1)}', 2, 'completed', null, 'w', '2026-01-02Z', '2026-01-03Z'),
    ('${id(18)}', '${id(1)}', 1, 'failed', '{"code": "c", "message": "m 22"}', 'w', '2026-01-02Z', '2026-01-03Z');
  insert into job_events (org_id, job_id, state, attempt, reason)
  select org_id, id, 'ready', 0, 'old' from jobs order by id;
  insert into job_logs (org_id, job_id, attempt, at, level, message) values
    ('${id(1)}', '${id(16)}', 1, '2026-01-02', 'info', 'first'), ('${id(1)}', '${id(16)}', 2, '2026-01-02', 'warn', 'second')`

test('the jobs of the release before survive, each where it stood', async () => {
  const database = await emptyDatabase()
  await migrateTo(database, 2)
  await database.sql(RELEASE_BEFORE)
  await migrateDatabase(database.url)

  const jobs = await database.sql<{ status: string; attempts: number }>(
    'select * from job_overview order by id',
  )
  assert.deepEqual(
    jobs.map(({ status, attempts }) => `${status} ${attempts}`),
    ['pending 0', 'retrying 1', 'ready 2', 'ready 0', 'running 2', 'completed 2', 'failed 3', 'failed 1'],
  )
  const [pending, , , , , completed, failed] = jobs as Record<string, unknown>[]
  const kept = ({
    created_by,
    type,
    name,
    payload,
    priority,
    tags,
    timeout_seconds,
    max_attempts,
  }: typeof pending = {}) => [
    ...[created_by, type, name, payload, priority, tags, timeout_seconds, max_attempts],
  ]
  assert.deepEqual(kept(pending), [id(2), 'test', 'name 1', { n: 11 }, 'high', ['tag'], 11, 3])
  assert.deepEqual([completed?.result, failed?.error], [{ ok: true }, { code: 'c', message: 'm 1' }])
  assert.deepEqual(completed?.started_at, new Date('2026-01-02'))

  const attempts = await database.sql(
    'select job_id, attempt, outcome from attempts order by job_id, attempt',
  )
  assert.deepEqual(
    attempts.map(({ job_id, attempt, outcome }) => `${String(job_id).slice(-2)} ${attempt} ${outcome}`),
    ['12 1 failed', '15 1 lost', '16 1 failed'],
    'the last attempt of a finished job stands with the job',
  )
  const lines = await database.sql('select message from job_logs order by id')
  assert.deepEqual(
    lines.map(({ message }) => message),
    ['first', 'second'],
  )
  assert.equal((await database.sql(`select from job_events where reason = 'old'`)).length, 8)
  const fingerprints = await database.sql<{ n: number }>(
    'select count(*)::int as n from finished_jobs where fingerprint is not null group by fingerprint',
  )
  assert.deepEqual(fingerprints, [{ n: 2 }], 'errors that differ in a number are the same')
})

test('the jobs of the release before run on, in order of age', async () => {
  const database = await emptyDatabase()
  await migrateTo(database, 2)
  await database.sql(RELEASE_BEFORE)
  await migrateDatabase(database.url)
  const term = await lead(database.run)
  await database.run(reclaimExpiredLeases(term, 10))
  const claimed = await claim(database.run)
  assert.deepEqual(
    claimed.map(({ job_id, attempt }) => [job_id, attempt]),
    [
      [id(13), 3],
      [id(14), 1],
    ],
  )
  // Its workers were lost twice in a row.
  const [alone] = await database.run(
    claimSuspect({ workerId: 'worker-2', leaseSeconds: 30, types: ['test'], cpuUnits: 1, memoryMb: 64 }),
  )
  assert.ok(alone)
  assert.deepEqual([alone.job_id, alone.attempt], [id(15), 3])
  await end(database.run, ...[...claimed, readLoneJob(alone)].map((job) => completed(job)))
  assert.deepEqual(await misplacedJobs(database.sql), [])
})
