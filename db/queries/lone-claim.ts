import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import { HAS_PAUSES_OR_LIMITS, TOKEN } from './exchange-claim.ts'
import { type ClaimedJob, type Executions, toTrace } from './exchange-news.ts'
import { newestLaneOf } from './exchange-rerank.ts'

const BIG = `(cpu_units > 1 or memory_mb > 64)`

export type LoneClaim = {
  workerId: string
  leaseSeconds: number
  types: readonly string[]
  order: 'rank' | 'age'
}

export type LoneRow = Omit<ClaimedJob, 'started' | 'cpu_units' | 'memory_mb' | 'trace'> & {
  predicted_ms: number
  traceparent: string | null
  executions: Executions | null
  /** There are others: worth a claim of many. */
  more: boolean
}

/**
 * Claims the next job for a worker that has none: what an exchange would do first, without what it takes for many. It
 * takes nothing while anything out of the ordinary waits (a pause, a limit, a deadline, a big job, one in the wrong place):
 * that is for an exchange.
 *
 * Lateral lookups and no joins: planned while the tables are empty, a join reads all jobs there will ever be.
 */
export const claimLoneJob = ({ workerId, leaseSeconds, types, order }: LoneClaim): Query<LoneRow> => ({
  ...TEXTS[order],
  values: [workerId, leaseSeconds, types],
})

/**
 * Claims a job that has to run alone, for a worker that holds no job and claims no other until this one has
 * finished.
 */
export const claimSuspect = (claim: {
  workerId: string
  leaseSeconds: number
  types: readonly string[]
  cpuUnits: number
  memoryMb: number
}): Query<LoneRow> => ({
  ...CLAIM_SUSPECT,
  values: [claim.workerId, claim.leaseSeconds, claim.types, claim.cpuUnits, claim.memoryMb],
})

export const readLoneJob = ({
  predicted_ms,
  more: _,
  traceparent,
  executions,
  ...job
}: LoneRow): ClaimedJob => ({
  ...job,
  trace: traceparent === null ? null : toTrace([job.job_id, traceparent, predicted_ms], executions),
  started: true,
  ...DEFAULT_RESOURCES,
})

const ORDINARY = `
        and not (select ${HAS_PAUSES_OR_LIMITS})
        and not (select exists (select from smartqueue.ready_jobs where start_by is not null and lane < ${FIRST_PARKED_LANE}))
        and not (select exists (select from smartqueue.ready_jobs where ${BIG} and lane < ${FIRST_PARKED_LANE}))`

const OTHERS_WAIT = `(select count(*) from (select from smartqueue.ready_jobs where lane < ${FIRST_PARKED_LANE} limit 2) queued) > 1`

/** Where there is a choice, a job that has turned out slower since it became ready is left to an exchange, which chooses. */
const CHOSEN_BY_RANK = `
    chosen as materialized (
      select place
      from first
      ${newestLaneOf('first')}
      where newest.lane <= first.lane
        or not ${OTHERS_WAIT}
    ),`

const CHOSEN_BY_AGE = `
    chosen as materialized (
      select place
      from first
    ),`

/**
 * Leases the job of the CTE `chosen` and returns what its worker needs to know. `$1` is the worker, `$2` the
 * lease.
 */
const TAKE_CHOSEN = `
    taken as (
      delete from smartqueue.ready_jobs
      where ctid = any (array(select place from chosen))
      returning job_id, org_id, series_id, type, attempts + 1 as attempt, predicted_ms, alone
    ),
    leased as (
      insert into smartqueue.leases (token, worker_id, expires_at, job_ids, org_ids, attempts, started_ats, alone)
      select
        ${TOKEN}, $1::text, now() + $2::integer * interval '1 second', array[job_id], array[org_id], array[attempt],
        array[now()], alone
      from taken
      returning token
    ),
    event as (
      insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select org_id, array[job_id], '{running}', array[attempt], '{}', '{}'
      from taken
    )
    select
      t.job_id, t.org_id, t.series_id::text as series_id, t.type, s.name, j.payload, j.timeout_seconds, j.predicted_p99_ms,
      (select token from leased)::text as token, t.attempt,
      (select checkpoint from smartqueue.job_progress where job_id = t.job_id) as checkpoint, t.predicted_ms,
      j.traceparent,
      case when j.traceparent is not null then smartqueue.executions_of(array[t.org_id], array[t.job_id]) end as executions,
      ${OTHERS_WAIT} as more
    from taken t
    cross join lateral (select name from smartqueue.series where id = t.series_id offset 0) s
    cross join lateral (
      select payload, timeout_seconds, predicted_p99_ms, traceparent
      from smartqueue.jobs
      where org_id = t.org_id
        and id = t.job_id
      offset 0
    ) j`

const loneText = (order: string, chosen: string): string => `
    with first as materialized (
      select c.ctid as place, c.org_id, c.job_id, c.series_id, c.lane
      from smartqueue.ready_jobs c
      where c.lane < ${FIRST_PARKED_LANE}
        and c.type = any ($3::text[])${ORDINARY}
      order by ${order}
      limit 1
      for update of c skip locked
    ),${chosen}${TAKE_CHOSEN}`

/** Claims the suspect that has waited longest among those that may run and fit into an empty worker. */
const CLAIM_SUSPECT = {
  name: 'claim-suspect',
  text: `
    with chosen as materialized (
      select c.ctid as place
      from smartqueue.ready_jobs c
      where c.alone
        and c.type = any ($3::text[])
        and c.cpu_units <= $4::real
        and c.memory_mb <= $5::integer
        and not exists (
          select
          from smartqueue.pauses p
          where p.org_id = c.org_id
            and (p.type is null or p.type = c.type)
        )
        and coalesce(smartqueue.running_room(c.org_id, '{}'), 1) > 0
      order by c.key
      limit 1
      for update of c skip locked
    ),${TAKE_CHOSEN}`,
}

const TEXTS = {
  rank: { name: 'claim-lone-job-rank', text: loneText('c.lane, c.key', CHOSEN_BY_RANK) },
  age: { name: 'claim-lone-job-age', text: loneText('c.key', CHOSEN_BY_AGE) },
}
