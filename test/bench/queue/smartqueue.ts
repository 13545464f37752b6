import pg from 'pg'
import { registerJobTypes } from '../../../db/queries/job-types.ts'
import { setQuotas } from '../../../db/queries/quotas.ts'
import type { Query } from '../../../db/query.ts'
import { submitJobs } from '../../../db/queue/submit.ts'
import { uuidV7 } from '../../../db/rules/uuid-v7.ts'
import { createSubmitter } from '../../../functions/jobs/submitter.ts'
import { ensureLogin, type Runtime, withLogin } from '../../../worker-runtime/database-login.ts'
import { migrateDatabase, withClient } from '../../../worker-runtime/migrate.ts'
import { newJob, seedTenant, type Tenant } from '../../support/jobs.ts'
import { newSession, storedSession } from '../../support/sessions.ts'
import { type Contender, JOB_TYPE, PAYLOAD, type QueueClient } from './contender.ts'

/** The statement of the API and the worker of the pods; what the API adds is measured apart (bench -- api). */
export const smartqueue: Contender = {
  key: 'smartqueue',
  name: 'SmartQueue',
  about: '300 slots a worker',
  store: 'postgres',
  share: 1,
  worker: { file: new URL('./smartqueue-worker.ts', import.meta.url) },
  prepare: async (url) => {
    await migrateDatabase(url)
    await withClient(url, async (client) => {
      const run = runOn(client)
      const { orgId } = await seedTenant(run, 'bench')
      await run(registerJobTypes([{ type: JOB_TYPE, payload_schema: {} }]))
      await run(setQuotas(orgId, BEYOND_REACH))
      for (const runtime of ['functions', 'workers'] as const)
        await ensureLogin(client, runtime, loginOf(runtime))
    })
  },
  open: (url) => openClient(url),
  seedFinished: async (url, count) => {
    const tenant = await withClient(url, findTenant)
    await withClient(url, async (client) => {
      // Leaves the foreign keys unchecked, which takes most of the time.
      await client.query('set session_replication_role = replica')
      await client.query(SEED_FINISHED, [tenant.orgId, tenant.userId, count])
    })
  },
}

/** As a runtime connects: under row-level security. */
export const urlOf = (url: string, runtime: Runtime): string => withLogin(url, loginOf(runtime))

const loginOf = (runtime: Runtime) => ({ name: `bench_${runtime}`, password: 'bench' })

/** Limits that are counted like any others, and never reached. */
export const BEYOND_REACH = { submissions_per_minute: 1e12, queued_jobs: 1e12, payload_bytes_per_day: 1e15 }

const openClient = async (url: string): Promise<QueueClient> => {
  const { orgId } = await withClient(url, findTenant)
  // As a process that holds the database's password, like those of the peers. Checking who submits is measured with the API.
  const submitter = { orgId, userId: null }
  // One connection, because submissions are sent in groups, one group after the other.
  const client = new pg.Client({ connectionString: urlOf(url, 'workers') })
  await client.connect()
  const run = runOn(client)
  const { submit } = createSubmitter({ run })
  return {
    add: () => submit({ ...submitter, jobs: [noopJob()] }),
    addMany: async (count) => {
      const submitting = submitJobs([{ ...submitter, jobs: Array.from({ length: count }, noopJob) }])
      const [stored] = submitting.read(await run(submitting)).rows
      if (stored?.id == null) throw new Error(`The batch was refused: ${JSON.stringify(stored)}`)
    },
    unfinished: async () => Number((await client.query(UNFINISHED)).rows[0].jobs),
    close: () => client.end(),
  }
}

const NOOP = newJob({ type: JOB_TYPE, name: 'noop', payload: PAYLOAD })

export const noopJob = () => ({ ...NOOP, id: uuidV7() })

export const runOn =
  (client: { query: (config: pg.QueryConfig) => Promise<pg.QueryResult> }) =>
  async <Row>({ name, text, values }: Query<Row>): Promise<Row[]> =>
    (await client.query({ name, text, values: [...values] })).rows

export const findTenant = async (client: pg.Client): Promise<Tenant> => {
  const session = newSession()
  const { rows } = await client.query(
    `insert into smartqueue.refresh_families (id, user_id, org_id, secret_hash)
     select $1, user_id, org_id, decode($2, 'hex')
     from smartqueue.memberships
     returning org_id as "orgId", user_id as "userId"`,
    [session.sessionId, storedSession(session).secretHash],
  )
  return { ...rows[0], ...session }
}

export const UNFINISHED = `
  select
    (select count(*) from smartqueue.ready_jobs) +
    (select count(*) from smartqueue.waiting_jobs) +
    (select coalesce(sum(cardinality(job_ids)), 0) from smartqueue.leases) as jobs`

/** What the statements of the product leave behind of a job that went well. */
const SEED_FINISHED = `
  with repeated as (
    insert into smartqueue.series (org_id, type, name)
    values ($1::uuid, '${JOB_TYPE}', 'noop')
    on conflict on constraint series_identity do update
    set name = excluded.name
    returning id
  ),
  job as (
    insert into smartqueue.jobs (
      org_id, id, created_by, series_id, type, name, payload, priority, tags, max_attempts, initial_delay_seconds,
      backoff_multiplier, cpu_units, memory_mb, on_parent_failure, predicted_ms, predicted_p90_ms, prediction_source,
      rank_base, rank_slope, created_at
    )
    select
      $1::uuid, uuidv7(interval '-1 day'), $2::uuid, repeated.id, '${JOB_TYPE}', 'noop',
      '${JSON.stringify(PAYLOAD)}'::jsonb, 'normal', '{}', 3, 0, 2, 1, 64, 'fail', 1000, 10000, 'default', 0, 1,
      now() - interval '1 day'
    from repeated, generate_series(1, $3::int)
    returning id, org_id, series_id, created_at
  ),
  event as (
    insert into smartqueue.job_event_groups (org_id, at, job_ids, states, attempts, reasons, ats)
    select
      org_id, created_at, array[id, id, id], '{ready,running,completed}', '{0,1,1}', '{null,null,null}',
      array[created_at, created_at, created_at]
    from job
  )
  insert into smartqueue.finished_jobs (
    org_id, job_id, series_id, state, attempts, worker_id, started_at, runtime_ms, finished_at
  )
  select org_id, id, series_id, 'completed', 1, 'seed', created_at, 1, created_at
  from job`
