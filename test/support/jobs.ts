import { registerAccount } from '../../db/queries/accounts.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import type { JobFailure } from '../../db/queries/jobs.ts'
import { beginTerm } from '../../db/queries/leader.ts'
import type { Member } from '../../db/queries/scope.ts'
import type { Run } from '../../db/query.ts'
import {
  type Claim,
  type ClaimedJob,
  type ClaimNews,
  type EndedAttempt,
  type EndState,
  exchange as exchangeJobs,
  type KnownFlow,
  readExchange,
} from '../../db/queue/exchange.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { type Submission, type SubmissionRow, submitJobs } from '../../db/queue/submit.ts'
import { type ReclaimedJob, reclaimExpiredLeases } from '../../db/queue/upkeep.ts'
import { ALL_FLOWS } from '../../db/rules/flows.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { DEFAULT_RESOURCES } from '../../db/rules/resources.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { TestDatabase } from './database.ts'
import { NOWHERE, newSession, storedSession } from './sessions.ts'
import { waitFor } from './wait-for.ts'

/** A user in an organisation, with the credentials of a session. */
export type Tenant = Member

/** An account with its organisation, written past the API. */
export const seedTenant = async (run: Run, username = `user-${uuidV7()}`): Promise<Tenant> => {
  const tenant = { orgId: uuidV7(), userId: uuidV7(), ...newSession() }
  const account = { ...tenant, username, passwordHash: 'none', invitationHash: null }
  await run(registerAccount(account, storedSession(tenant), NOWHERE))
  await run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  return tenant
}

export const newJob = (overrides: Partial<NewJob> = {}): NewJob => ({
  id: uuidV7(),
  type: 'test',
  name: 'a job',
  payload: {},
  priority: 'normal',
  tags: [],
  timeout_seconds: null,
  max_attempts: 3,
  initial_delay_seconds: 0,
  backoff_multiplier: 2,
  ...DEFAULT_RESOURCES,
  run_at: null,
  deadline: null,
  depends_on: [],
  on_parent_failure: 'fail',
  callback_url: null,
  fairness_key: null,
  triggered_by: null,
  traceparent: null,
  prediction: null,
  ...rankTerms(overrides.priority ?? 'normal', overrides.timeout_seconds ?? null),
  ...overrides,
})

/** What the API does: the statement, and the answer put together. */
export const submitAll = async (run: Run, submissions: readonly Submission[]): Promise<SubmissionRow[]> => {
  const submitting = submitJobs(submissions)
  return submitting.read(await run(submitting)).rows
}

export const seedJobs = async (run: Run, tenant: Tenant, jobs: NewJob[]): Promise<string[]> => {
  await run(submitJobs([{ ...tenant, jobs }]))
  return jobs.map(({ id }) => id)
}

/** A claim by a worker that knows nothing of the queue. */
export const NO_CLAIM: Claim = {
  limit: 0,
  types: ['test'],
  newestRank: false,
  fifo: false,
  newTurn: 1,
  flows: [],
  gaps: [ALL_FLOWS],
  everywhere: true,
  freeCpuUnits: 1_000,
  freeMemoryMb: 1_000_000,
  ahead: 0,
}

/** The flow of an organisation's jobs without fairness keys, as a worker knows it that remembers nothing else. */
export const knownFlow = async (
  sql: TestDatabase['sql'],
  orgId: string,
  memory: Partial<KnownFlow> = {},
): Promise<KnownFlow> => {
  const [row] = await sql<{ flow: string }>('select flow_of($1, null) as flow', [orgId])
  const fresh = { orgTimeMs: 0, timeMs: 0, waits: true, turn: 1, oldestFirst: false, ageFloor: 0, floors: [] }
  return { ...fresh, flow: Number(row?.flow), ...memory }
}

export type ExchangeNews = ClaimNews & {
  /** Ended jobs whose lease was no longer held. */
  lost: string[]
  states: EndState[]
  becameReady: number
}

/** One exchange as a worker makes it: by rank, unless told otherwise. */
export const exchange = async (
  run: Run,
  options: {
    workerId?: string
    ended?: EndedAttempt[]
    closed?: string[]
    claim?: Partial<Claim>
  } = {},
): Promise<{ news: ExchangeNews; claimed: ClaimedJob[] }> => {
  const ended = options.ended ?? []
  const rows = await run(
    exchangeJobs({
      workerId: options.workerId ?? 'worker-1',
      leaseSeconds: 30,
      ended,
      closed: options.closed ?? [],
      claim: { ...NO_CLAIM, ...options.claim },
    }),
  )
  const { states, becameReady, claimed, news } = readExchange(rows, { ended })
  const lost = ended.filter((_, n) => states[n] === null).map(({ job_id }) => job_id)
  return { news: { ...news, lost, states, becameReady }, claimed }
}

export const claim = async (run: Run, workerId = 'worker-1', limit = 10): Promise<ClaimedJob[]> =>
  (await exchange(run, { workerId, claim: { limit } })).claimed

/** What every end of an attempt says. */
export const held = ({ job_id, token, org_id, series_id, attempt }: ClaimedJob) => ({
  job_id,
  token,
  org_id,
  series_id,
  attempt,
  ranMs: 5,
})

export const completed = (job: ClaimedJob, result: unknown = null, ranMs = 5): EndedAttempt => ({
  ...held(job),
  ranMs,
  outcome: 'completed',
  resultJson: result === null ? null : JSON.stringify(result),
})

export const FAILURE: JobFailure = { code: 'broken', message: 'It broke.' }

export const failed = (job: ClaimedJob, error = FAILURE): EndedAttempt => ({
  ...held(job),
  outcome: 'failed',
  error,
  permanent: true,
})

/** Is retried after exactly `delayMs`, because the jobs of `newJob` have no backoff. */
export const retrying = (job: ClaimedJob, delayMs = 0, error = FAILURE): EndedAttempt => ({
  ...held(job),
  outcome: 'failed',
  error,
  permanent: false,
  retryAfterMs: delayMs,
})

export const timedOut = (job: ClaimedJob, ranMs: number): EndedAttempt => ({
  ...retrying(job, 0, { code: 'timeout', message: 'The attempt ran too long.' }),
  ranMs,
})

export const snoozed = (job: ClaimedJob, delayMs = 0): EndedAttempt => ({
  ...held(job),
  outcome: 'snoozed',
  delayMs,
})

export const end = async (run: Run, ...ended: EndedAttempt[]): Promise<ExchangeNews> =>
  (await exchange(run, { ended })).news

/** Begins a term without holding the lock, for statements that ask for one. */
export const lead = async (run: Run, workerId = 'leader'): Promise<string> => {
  const [begun] = await run(beginTerm(workerId))
  if (!begun) throw new Error('No term began')
  return begun.term
}

/** A job as people see it. */
export type JobView = {
  id: string
  status: string
  attempts: number
  worker_id: string | null
  started_at: Date | null
  finished_at: Date | null
  runtime_ms: number | null
  result: unknown
  error: JobFailure | null
  progress: number | null
  progress_note: string | null
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: string
  rank: number
}

/** Ways to look at the jobs of a database, for tests. */
export const watchJobs = (sql: TestDatabase['sql']) => {
  const look = async (id: string | undefined): Promise<JobView> => {
    const [job] = await sql<JobView>('select * from job_overview where id = $1', [id])
    if (!job) throw new Error(`There is no job ${id}`)
    return job
  }
  return {
    look,
    statusOf: async (id: string | undefined): Promise<string> => (await look(id)).status,
    statuses: async (ids: readonly string[]): Promise<string[]> => {
      const rows = await sql<{ status: string }>(
        `select o.status
        from unnest($1::uuid[]) with ordinality as wanted (id, position)
        join job_overview o on o.id = wanted.id
        order by wanted.position`,
        [ids],
      )
      return rows.map(({ status }) => status)
    },
    /** Each with its reason, if it has one: `failed: timeout`. */
    eventsOf: async (id: string | undefined): Promise<string[]> => {
      const rows = await sql<{ event: string }>(
        `select concat_ws(': ', state, reason) as event from job_events where job_id = $1 order by id, position`,
        [id],
      )
      return rows.map(({ event }) => event)
    },
    untilStatus: (id: string | undefined, status: string): Promise<JobView> =>
      waitFor(`job ${id} ${status}`, async () => {
        const job = await look(id)
        return job.status === status && job
      }),
    untilAll: (ids: readonly string[], status: string): Promise<unknown> =>
      waitFor(`${ids.length} jobs ${status}`, async () => {
        const [row] = await sql<{ count: number }>(
          'select count(*)::int from job_overview where id = any ($1::uuid[]) and status = $2',
          [ids, status],
        )
        return row?.count === ids.length
      }),
  }
}

/** As if every worker had been silent for too long. */
export const expireLeases = (sql: TestDatabase['sql']) => sql('update leases set expires_at = now()')

/** Lets one worker claim all ready jobs, and loses it with them. */
export const loseReadyJobs = async (
  { run, sql }: TestDatabase,
  workerId: string,
  types = ['test'],
): Promise<ReclaimedJob[]> => {
  await exchange(run, { workerId, claim: { limit: 1_000, types } })
  await expireLeases(sql)
  const [leader] = await sql<{ term: string }>('select term from scheduler_leader')
  return run(reclaimExpiredLeases(leader?.term ?? (await lead(run)), 1_000))
}

/** Turns all ready jobs (two or more) into suspects by losing two workers in a row while they run them. */
export const makeSuspects = async (database: TestDatabase, types?: string[]): Promise<void> => {
  await loseReadyJobs(database, 'lost-1', types)
  await loseReadyJobs(database, 'lost-2', types)
}

/** The job is someone else's by now, under a lease that its first holder knows nothing of. */
export const passLeaseOn = async (sql: TestDatabase['sql'], id: string): Promise<void> => {
  await sql(
    `with held as (select * from held_jobs where job_id = $1), left_alone as (${TAKE_OUT})
    insert into leases (token, worker_id, expires_at, claimed_at, job_ids, org_ids, attempts, claimed_jobs)
    select nextval('lease_tokens'), 'someone else', expires_at, started_at, array[job_id], array[org_id], array[attempt], 1
    from held`,
    [id],
  )
}

const TAKE_OUT = `
  update leases l
  set
    (job_ids, org_ids, attempts) = (
      select
        coalesce(array_agg(h.job_id order by n), '{}'), coalesce(array_agg(h.org_id order by n), '{}'),
        coalesce(array_agg(h.attempt order by n), '{}')
      from unnest(l.job_ids, l.org_ids, l.attempts) with ordinality as h (job_id, org_id, attempt, n)
      where h.job_id <> $1
    )
  where $1 = any (l.job_ids)`

/** What the API does to a running job: out of its lease, and among the finished. */
export const cancelHeldJob = async (sql: TestDatabase['sql'], id: string): Promise<void> => {
  await sql(
    `with held as (select * from held_jobs where job_id = $1), gone as (${TAKE_OUT})
    insert into finished_jobs (org_id, job_id, series_id, state, attempts)
    select held.org_id, held.job_id, j.series_id, 'cancelled', held.attempt
    from held
    join jobs j on j.id = held.job_id`,
    [id],
  )
}

/** Every job stands in exactly one of these. Answers those that do not. */
export const misplacedJobs = (sql: TestDatabase['sql']) =>
  sql(`
    select j.id, array_agg(place.name) as places
    from jobs j
    left join (
      select job_id, 'waiting' as name from waiting_jobs
      union all select job_id, 'ready' from ready_jobs
      union all select job_id, 'leased' from held_jobs
      union all select job_id, 'blocked' from blocked_jobs
      union all select job_id, 'finished' from finished_jobs
    ) place on place.job_id = j.id
    group by j.id
    having count(place.job_id) <> 1`)

/** As a fresh template, but with accounts and job types. */
export const clearJobs = async (sql: TestDatabase['sql']): Promise<void> => {
  await sql(`
    truncate jobs, waiting_jobs, ready_jobs, leases, blocked_jobs, finished_jobs, attempts, job_event_groups, job_logs,
      job_progress, job_dependencies, series, series_memories, executions, type_estimates, org_type_estimates, org_memories, pauses, reservations,
      workers, scheduler_leader, queue_snapshots, org_queues, job_rollups, prediction_rollups, scheduling_gains,
      slot_changes, load_minutes, job_totals, queue_gauges;
    insert into job_totals default values`)
  await sql(
    `update event_cursors set xid = pg_snapshot_xmin(pg_current_snapshot()), id = 0, position = 0, foreign_id = 0`,
  )
}

/**
 * Makes the database reject jobs of this name with a data exception if they have a prediction, as for a value
 * out of range.
 */
export const refusePredictions = (sql: TestDatabase['sql'], name: string): Promise<unknown> =>
  sql(`
    create or replace function refuse_prediction() returns trigger language plpgsql as $$
    begin
      raise exception 'out of range for type real' using errcode = '22003';
    end
    $$;
    create trigger refuse_prediction before insert on jobs
    for each row when (new.name = '${name}' and new.sample is not null) execute function refuse_prediction()`)

export const acceptPredictions = (sql: TestDatabase['sql']): Promise<unknown> =>
  sql('drop trigger refuse_prediction on jobs')
