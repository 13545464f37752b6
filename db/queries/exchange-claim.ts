import { FIRST_PARKED_LANE, LOWEST_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import {
  byNewestRank,
  lookAtWindow,
  NEWEST_LANE,
  oldestLeft,
  WINDOW_COLUMNS,
  WINDOW_LIMIT,
} from './exchange-rerank.ts'
import type { ExchangeShape } from './exchange-shape.ts'

/** Something may keep jobs from being claimed: a pause, or a limit of running jobs. */
export const HAS_PAUSES_OR_LIMITS = `(
          exists (select from smartqueue.pauses)
          or exists (select from smartqueue.quotas where running_jobs is not null)
        )`

/** A claim that does not look at pauses and limits takes nothing while there is one; the next claim looks. */
const claimable = ({ restricted }: ExchangeShape): string => `
            and c.type = any (:types!)
            and ${restricted ? PASSES : `not (select ${HAS_PAUSES_OR_LIMITS})`}`

const PASSES = `not exists (
              select
              from smartqueue.pauses p
              where p.org_id = c.org_id
                and (p.type is null or p.type = c.type)
            )
            and c.org_id <> all (array(select org_id from full_org))
            and (
              (select running_jobs from smartqueue.quotas where org_id is null) is distinct from 0
              or c.org_id in (select org_id from smartqueue.quotas where org_id is not null)
            )`

/**
 * Organisations that have as many jobs running as they may are passed over as a whole. That is a first look, without a
 * lock; how many more of the others may run is asked exactly, for those of whom candidates were found.
 */
const FULL_ORGS = `
    full_org as materialized (
      select h.org_id
      from (
        select org_id, count(*) as running
        from smartqueue.held_jobs
        where job_id <> all (:job_ids!)
        group by org_id
      ) h
      cross join lateral smartqueue.quotas_of(h.org_id) q
      where h.running >= q.running_jobs
      union all
      select org_id
      from smartqueue.quotas
      where running_jobs = 0
        and org_id is not null
    )`

/** Candidates, and in a restricted claim only as many of each organisation as may run. */
const candidates = (shape: ExchangeShape, columns: string, fits: string): { parts: string; from: string } => {
  const found = sources(shape, shape.restricted ? `${columns}, c.org_id` : columns, fits)
  const seen = shape.reranked ? lookAtWindow(byRank(WINDOW_COLUMNS, whichOf(shape, fits), WINDOW_LIMIT)) : ''
  if (!shape.restricted) return { parts: seen, from: `(${found}\n        ) candidate` }
  return {
    parts: `${seen}
    candidate as materialized (
      select found.*, row_number() over () as n
      from (${found}
      ) found
      limit :claim_limit!
    ),
    org_room as materialized (
      select org_id, smartqueue.running_room(org_id, :job_ids!) as room
      from (select distinct org_id from candidate) o
    ),
    allowed as materialized (
      select c.*
      from (select *, row_number() over (partition by org_id order by n) as nth_of_org from candidate) c
      left join org_room r on r.org_id = c.org_id
      where r.room is null or c.nth_of_org <= r.room${shape.sized ? ' - (select count(*) from kept k where k.org_id = c.org_id)' : ''}
      order by c.n
    ),`,
    from: 'allowed',
  }
}

/** Where candidates come from, in order: a latest start that has come, then rank or age. */
const sources = (shape: ExchangeShape, columns: string, fits: string): string => {
  const which = whichOf(shape, fits)
  return `
        select *
        from (
          select ${columns}
          from smartqueue.ready_jobs c
          where c.start_by <= now()
            and c.start_by is not null
            and c.lane < ${FIRST_PARKED_LANE}${which}
          order by c.start_by
          limit :claim_limit!
          for update of c skip locked
        ) urgent
        union all
        ${inOrder(shape, columns, which)}`
}

const whichOf = (shape: ExchangeShape, fits: string): string => `${claimable(shape)}${fits}`

const inOrder = ({ order, reranked }: ExchangeShape, columns: string, which: string): string => {
  if (order === 'age') return byAge(columns, which)
  if (!reranked) return byRank(columns, which, ':claim_limit!', LOCKED)
  return `select *
        from (
        ${byNewestRank(columns)}
        ) best`
}

const LOCKED = `
          for update of c skip locked`

const NOT_URGENT = `
            and (c.start_by is null or c.start_by > now())`

const byAge = (columns: string, which: string): string => `select *
        from (
          select ${columns}
          from smartqueue.ready_jobs c
          where c.key >= :age_from_key!
            and c.lane < ${FIRST_PARKED_LANE}${which}${NOT_URGENT}
          order by c.key
          limit :claim_limit!
          for update of c skip locked
        ) oldest`

const byRank = (columns: string, which: string, limit: string, locked = ''): string => `select next.*
        from (
          select
            (:from_lanes!)[n] as from_lane, (:from_keys!)[n] as from_key,
            (:to_lanes!)[n] as to_lane, (:to_keys!)[n] as to_key
          from generate_series(1, cardinality(:from_lanes!)) as n
        ) part
        cross join lateral (
          select ${columns}
          from smartqueue.ready_jobs c
          where (c.lane, c.key) >= (part.from_lane, part.from_key)
            and (c.lane, c.key) < (part.to_lane, part.to_key)${which}${NOT_URGENT}
          order by c.lane, c.key
          limit ${limit}${locked}
        ) next`

const ONE_SIZE = `
            and c.cpu_units <= ${DEFAULT_RESOURCES.cpu_units}
            and c.memory_mb <= ${DEFAULT_RESOURCES.memory_mb}`

export const claimPlain = (shape: ExchangeShape): string => {
  const { parts, from } = candidates(shape, 'c.ctid as place', ONE_SIZE)
  return `${shape.restricted ? `${FULL_ORGS},` : ''}${parts}
    chosen as materialized (
      select place
      from ${from}
      limit :claim_limit!
    )`
}

/**
 * A job fits if it fits into what is free; one of the default size always, because it may be claimed ahead. The sums
 * run in the order of the candidates.
 */
const FITS = `
            and c.cpu_units <= (select greatest(cpu_units, ${DEFAULT_RESOURCES.cpu_units}) from room)
            and c.memory_mb <= (select greatest(memory_mb, ${DEFAULT_RESOURCES.memory_mb}) from room)
            and c.job_id not in (select job_id from reserved)`

export const claimSized = (shape: ExchangeShape): string => {
  const { parts, from } = candidates(shape, 'c.ctid as place, c.cpu_units, c.memory_mb', FITS)
  return `${shape.restricted ? `${FULL_ORGS},` : ''}
    reserved as materialized (
      select job_id, org_id, cpu_units, memory_mb
      from smartqueue.reservations
      where worker_id = :worker_id!
    ),
    room as materialized (
      select
        :free_cpu_units! - coalesce(sum(cpu_units), 0) as cpu_units,
        :free_memory_mb! - coalesce(sum(memory_mb), 0) as memory_mb
      from reserved
    ),
    kept as materialized (
      select c.ctid as place, c.org_id
      from reserved v
      join smartqueue.ready_jobs c on c.org_id = v.org_id and c.job_id = v.job_id
      where c.lane < ${FIRST_PARKED_LANE}
        and c.cpu_units <= :free_cpu_units!
        and c.memory_mb <= :free_memory_mb!${claimable(shape)}${shape.restricted ? KEPT_MAY_RUN : ''}
      -- One by one while the running jobs of an organisation are counted.
      limit ${shape.restricted ? 'least(1, :claim_limit!)' : ':claim_limit!'}
      for update of c skip locked
    ),${parts}
    chosen as materialized (
      select place
      from (
        select place, true as reserved, 0 as nth, 0 as cpu_sum, 0 as memory_sum
        from kept
        union all
        select place, false, row_number() over line, sum(cpu_units) over line, sum(memory_mb) over line
        from ${from}
        window line as (rows unbounded preceding)
      ) summed
      where reserved
        or (
          nth <= :claim_limit!
          and cpu_sum <= (select cpu_units from room) + :ahead! * ${DEFAULT_RESOURCES.cpu_units}
          and memory_sum <= (select memory_mb from room) + :ahead! * ${DEFAULT_RESOURCES.memory_mb}
        )
    )`
}

/** In the order of age it would be next. */
export const findOldestLeft = (shape: ExchangeShape): string =>
  oldestLeft(`${whichOf(shape, shape.sized ? FITS : ONE_SIZE)}${NOT_URGENT}`)

const KEPT_MAY_RUN = `
        and coalesce(smartqueue.running_room(c.org_id, :job_ids!), 1) > 0`

/**
 * Milliseconds and a sequence. The sequence alone could go back: a claim does not wait for the disk, and a crash of the
 * server may undo that its number was taken. (All brackets are needed: to Postgres the three operators are equals.)
 */
export const TOKEN = `((extract(epoch from clock_timestamp()) * 1000)::bigint << 20) | (nextval('smartqueue.lease_tokens') & 1048575)`

/**
 * By place: the rows are locked, so that no index need be asked again. A row that was moved by someone between the
 * snapshot and the lock is not found there; it stays ready.
 *
 * One pass over the claimed jobs makes every list that the lease and the answer need, and tells which of them say the
 * same of each job. Special is what was tried before, may have killed its worker, or is urgent.
 */
export const leaseClaimed = ({ sized, reranked }: ExchangeShape): string => `
    taken as (
      delete from smartqueue.ready_jobs
      where ctid = any (array(select place from chosen))
      returning
        job_id, org_id, series_id, ${reranked ? `${NEWEST_LANE} as lane` : 'lane'}, key, start_by, attempts, suspect,
        predicted_ms${sized ? ', cpu_units, memory_mb' : ''}
    ),
    summary as materialized (
      select
        array_agg(job_id) as job_ids,
        array_agg(org_id) as org_ids,
        array_agg(series_id) as series_ids,
        array_agg(attempts + 1) as attempts,
        array_agg(case when start_by <= now() then ${LOWEST_LANE} else lane end) as lanes,
        array_agg(key) as keys,
        min(key) as lowest_key,
        array_agg(case when :starts! or suspect then now() end) as started_ats,${sized ? SIZES : ''}
        sum(predicted_ms) as predicted_ms,
        min(series_id) < max(series_id) as of_several_series,
        min(lane) < max(lane) as of_several_lanes,
        bool_or(attempts > 0 or suspect or (start_by <= now()) is true) as some_special
      from taken
    ),
    leased as (
      insert into smartqueue.leases (token, worker_id, expires_at, job_ids, org_ids, attempts, started_ats)
      select
        ${TOKEN}, :worker_id!, now() + :lease_seconds! * interval '1 second', job_ids, org_ids, attempts, started_ats
      from summary
      where job_ids is not null
      returning token
    ),
    start_event as (
      insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select org_id, array_agg(job_id), '{running}', array_agg(attempts + 1), '{}', '{}'
      from taken
      where (select :starts! or some_special from summary)
        and (:starts! or suspect)
      group by org_id
    )`

const SIZES = `
        array_agg(cpu_units) as cpu_units,
        array_agg(memory_mb) as memory_mb,`

export const FULFILLED = `
    fulfilled as (
      delete from smartqueue.reservations
      where job_id = any ((select job_ids from summary)::uuid[])
    )`
