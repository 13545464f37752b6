import type { Query } from '../query.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import type { JobFailure } from './jobs.ts'

/** Names a held job. Every write of a worker carries the token: a former holder matches no row. */
export type LeaseKey = { job_id: string; token: string }

/** How an attempt ended. `ranMs` is its runtime by the worker's clock; `delayMs` is the wait before it is ready again. */
export type EndedAttempt = LeaseKey & { ranMs: number } & (
    | { state: 'completed'; resultJson: string | null }
    | { state: 'failed'; error: JobFailure }
    | { state: 'retrying'; error: JobFailure; delayMs: number }
    | { state: 'pending'; delayMs: number }
  )

/** A part of the order to look through: from the first position up to, and without, the second. */
export type Segment = { fromLane: number; fromKey: number; toLane: number; toKey: number }

export type Claim = {
  limit: number
  /** How many of them the worker starts at once; the others it holds until a slot is free. */
  startNow: number
  /** How many it may hold, beyond what fits now. Only jobs of the default size are claimed ahead. */
  ahead: number
  types: readonly string[]
  freeCpuUnits: number
  freeMemoryMb: number
  /** None: no jobs by rank. */
  segments: readonly Segment[]
  /** The age lane: its share of predicted milliseconds in this claim, how many jobs to look at, and from where. */
  ageAllowanceMs: number
  ageLimit: number
  ageFromKey: number
}

export type ClaimedJob = {
  job_id: string
  token: string
  type: string
  name: string
  payload: Record<string, unknown>
  attempt: number
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  cpu_units: number
  memory_mb: number
  predicted_ms: number
  checkpoint: unknown
  lane: number
  key: string
  /** Why it was taken: 0 it had a reservation, 1 its deadline, 2 it was the oldest, 3 it was next. */
  urgency: number
  /** Its place in the order of this claim, from 1. */
  nth: number
  /** Counts as started from the claim on. */
  started: boolean
}

/** The first row of an exchange: which ends came too late, and what else the worker should know. */
export type ExchangeHeader = {
  job_id: null
  /** Jobs whose lease was no longer held. */
  lost: string[]
  became_ready: number
  /** Jobs wait that are bigger than the default: a claim may have passed over some. */
  big_waiting: boolean
  /** What this worker must keep free for a job that has a reservation. */
  reserved_cpu_units: number
  reserved_memory_mb: number
}

export type ExchangeRow = ExchangeHeader | ClaimedJob

export const exchangeJobs = (exchange: {
  workerId: string
  leaseSeconds: number
  ended: readonly EndedAttempt[]
  started: readonly (LeaseKey & { ranMs: number })[]
  claim: Claim
}): Query<ExchangeRow> => {
  const { ended, started, claim } = exchange
  const { segments } = claim
  return {
    name: 'exchange-jobs',
    text: TEXT,
    values: [
      exchange.workerId,
      exchange.leaseSeconds,
      ended.map(({ job_id }) => job_id),
      ended.map(({ token }) => token),
      ended.map(({ state }) => state),
      ended.map((end) => (end.state === 'completed' ? end.resultJson : null)),
      ended.map((end) => ('error' in end ? JSON.stringify(end.error) : null)),
      ended.map((end) => ('delayMs' in end ? end.delayMs : null)),
      ended.map(({ ranMs }) => ranMs),
      started.map(({ job_id }) => job_id),
      started.map(({ token }) => token),
      started.map(({ ranMs }) => ranMs),
      claim.limit,
      claim.startNow,
      claim.types,
      claim.freeCpuUnits,
      claim.freeMemoryMb,
      segments.map(({ fromLane }) => fromLane),
      segments.map(({ fromKey }) => fromKey),
      segments.map(({ toLane }) => toLane),
      segments.map(({ toKey }) => toKey),
      claim.ageAllowanceMs,
      claim.ageLimit,
      claim.ageFromKey,
      claim.ahead,
    ],
  }
}

/** A stream whose estimate has changed by half has moved: its queued jobs are scored again. */
const MOVED = Math.log(1.5).toFixed(3)

const NOT_PAUSED = (row: string): string => `
        and not exists (
          select
          from pauses p
          where p.org_id = ${row}.org_id
            and (p.type is null or p.type = ${row}.type)
        )`

const CANDIDATE = `
        c.job_id, c.org_id, c.stream_id, c.lane, c.key, c.attempts, c.suspect, c.cpu_units, c.memory_mb, c.predicted_ms`

const FITS = `
        and c.cpu_units <= (select greatest(cpu_units, ${DEFAULT_RESOURCES.cpu_units}) from room)
        and c.memory_mb <= (select greatest(memory_mb, ${DEFAULT_RESOURCES.memory_mb}) from room)
        and c.type = any ($15::text[])${NOT_PAUSED('c')}`

const TEXT = `
    with claimed as materialized (
      select
        l.job_id, l.org_id, l.stream_id, l.worker_id, l.token, l.attempt,
        coalesce(l.started_at, now() - e.ran_ms * interval '1 millisecond') as started_at,
        l.started_at is null as unannounced, e.state, e.result, e.error, e.delay_ms, e.ran_ms
      from unnest(
        $3::uuid[], $4::bigint[], $5::text[], $6::jsonb[], $7::jsonb[], $8::double precision[], $9::double precision[]
      ) as e (job_id, token, state, result, error, delay_ms, ran_ms)
      cross join lateral (
        select job_id, org_id, stream_id, worker_id, token, attempt, started_at
        from leases
        where job_id = e.job_id
          and token = e.token
        offset 0
      ) l
    ),
    gone as (
      delete from leases
      where job_id = any (array(select job_id from claimed))
        and token = any (array(select distinct token from claimed))
      returning job_id
    ),
    held as materialized (
      select *
      from claimed
      where (job_id in (select job_id from gone)) is true
    ),
    finished as (
      insert into finished_jobs (
        org_id, job_id, stream_id, state, attempts, result, error, fingerprint, worker_id, started_at, runtime_ms
      )
      select
        org_id, job_id, stream_id, state, attempt, result, error,
        case state when 'failed' then error_fingerprint(error) end, worker_id, started_at, ran_ms
      from held
      where state in ('completed', 'failed')
    ),
    unfinished as (
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select org_id, job_id, attempt, case state when 'pending' then 'snoozed' else 'failed' end, error, worker_id, started_at
      from held
      where state in ('retrying', 'pending')
    ),
    waiting as (
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at, error)
      select
        job_id, org_id, state, case state when 'pending' then attempt - 1 else attempt end,
        now() + delay_ms * interval '1 millisecond', error
      from held
      where state in ('retrying', 'pending')
    ),
    learned as (
      update streams s
      set
        (runs, mean_log, deviation_log, moved) = (
          select f.runs, f.mean_log, f.deviation_log, s.scored_log is null or abs(f.mean_log - s.scored_log) > ${MOVED}
          from (
            select
              s.runs + m as runs,
              coalesce(s.mean_log, 0) + step * avg(surprise) as mean_log,
              case s.runs
                when 0 then 0.5
                else greatest(s.deviation_log + step * (avg(abs(surprise)) - s.deviation_log), 0.01)
              end as deviation_log
            from (
              select
                m,
                greatest(1 - 0.9::double precision ^ m, m / (s.runs + m)) as step,
                case s.runs when 0 then log else least(greatest(log - s.mean_log, -reach), reach) end as surprise
              from (
                select
                  count(*) over ()::double precision as m,
                  ln(greatest(ran_ms, 0.1)) as log,
                  greatest(0.3, 3 * s.deviation_log) as reach
                from held
                where stream_id = s.id
                  and state = 'completed'
              ) sample
            ) judged
            group by m, step
          ) f
        )
      where s.id = any (array(select distinct stream_id from held where state = 'completed' order by stream_id))
    ),
    begun as (
      update leases
      set started_at = now() - ($12::double precision[])[array_position($10::uuid[], job_id)] * interval '1 millisecond'
      where job_id = any ($10::uuid[])
        and token = ($11::bigint[])[array_position($10::uuid[], job_id)]
        and started_at is null
      returning org_id, job_id, attempt, started_at
    ),
    room as materialized (
      select
        $16::double precision - coalesce(sum(cpu_units), 0) as cpu_units,
        $17::double precision - coalesce(sum(memory_mb), 0) as memory_mb,
        coalesce(sum(cpu_units), 0) as reserved_cpu_units,
        coalesce(sum(memory_mb), 0)::double precision as reserved_memory_mb
      from reservations
      where worker_id = $1::text
    ),
    reserved as materialized (
      select${CANDIDATE}
      from reservations v
      join ready_jobs c on c.job_id = v.job_id
      where v.worker_id = $1::text
        and c.lane < 5000
        and c.cpu_units <= $16::double precision
        and c.memory_mb <= $17::double precision${NOT_PAUSED('c')}
      limit $13::int
      for update of c skip locked
    ),
    urgent as materialized (
      select${CANDIDATE}, c.start_by
      from ready_jobs c
      where c.start_by <= now()
        and c.start_by is not null
        and c.lane < 5000${FITS}
      order by c.start_by
      limit $13::int
      for update of c skip locked
    ),
    oldest as materialized (
      select${CANDIDATE}
      from ready_jobs c
      where c.key >= $24::bigint
        and c.lane < 5000${FITS}
      order by c.key
      limit $23::int
      for update of c skip locked
    ),
    next as materialized (
      select r.*
      from unnest($18::smallint[], $19::bigint[], $20::smallint[], $21::bigint[])
        as part (from_lane, from_key, to_lane, to_key)
      cross join lateral (
        select${CANDIDATE}
        from ready_jobs c
        where (c.lane, c.key) >= (part.from_lane, part.from_key)
          and (c.lane, c.key) < (part.to_lane, part.to_key)${FITS}
        order by c.lane, c.key
        limit $13::int
        for update of c skip locked
      ) r
      limit $13::int
    ),
    candidate as (
      select c.*, 0 as urgency, 0::double precision as position
      from reserved c
      union all
      select${CANDIDATE}, 1, extract(epoch from c.start_by)::double precision
      from urgent c
      union all
      select${CANDIDATE}, 2, c.key
      from (
        select *, sum(predicted_ms) over (order by key) - predicted_ms as before_ms
        from oldest
      ) c
      where before_ms < $22::double precision
      union all
      select c.*, 3, c.lane * 1e12::double precision + c.key
      from next c
    ),
    chosen as materialized (
      select *
      from (
        select
          *,
          row_number() over queue as nth,
          sum(case urgency when 0 then 0 else cpu_units end) over queue as cpu_sum,
          sum(case urgency when 0 then 0 else memory_mb end) over queue as memory_sum
        from (select distinct on (key) * from candidate order by key, urgency) c
        window queue as (order by urgency, position rows unbounded preceding)
      ) ordered
      where nth <= $13::int
        and cpu_sum <= (select cpu_units from room) + $25::int * ${DEFAULT_RESOURCES.cpu_units}
        and memory_sum <= (select memory_mb from room) + $25::int * ${DEFAULT_RESOURCES.memory_mb}
    ),
    taken as (
      delete from ready_jobs
      where job_id = any (array(select job_id from chosen))
    ),
    fulfilled as (
      delete from reservations
      where job_id = any (array(select job_id from chosen where urgency = 0))
    ),
    lease as materialized (
      select
        chosen.*, token.token, now() + $2::int * interval '1 second' as expires_at,
        case when nth <= $14::int or suspect then now() end as started_at
      from (select nextval('lease_tokens') as token) token, chosen
    ),
    leased as (
      insert into leases (job_id, org_id, stream_id, worker_id, token, attempt, started_at, expires_at)
      select job_id, org_id, stream_id, $1::text, token, attempts + 1, started_at, expires_at
      from lease
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt, reason, at)
      select org_id, job_id, 'running', attempt, null, started_at
      from held
      where unannounced
      union all
      select org_id, job_id, 'running', attempt, null, started_at
      from begun
      union all
      select
        org_id, job_id, state, case state when 'pending' then attempt - 1 else attempt end,
        case state when 'pending' then 'snoozed' else error ->> 'code' end, now()
      from held
      union all
      select org_id, job_id, 'running', attempts + 1, null, started_at
      from lease
      where started_at is not null
    )
    select
      null::uuid as job_id, null::bigint as token, null as type, null as name, null::jsonb as payload, null::int as attempt,
      null::int as timeout_seconds, null::int as max_attempts, null::double precision as initial_delay_seconds,
      null::double precision as backoff_multiplier, null::real as cpu_units, null::int as memory_mb,
      null::real as predicted_ms, null::jsonb as checkpoint, null::int as lane, null::bigint as key, null::int as urgency,
      null::int as nth, null::boolean as started,
      array(select job_id from unnest($3::uuid[]) as e (job_id) where job_id not in (select job_id from held)) as lost,
      case when exists (select from held) then settle_dependents(
        array(select job_id from held where state = 'completed'),
        array(select job_id from held where state = 'failed')
      ) else 0 end as became_ready,
      exists (select from ready_jobs where (cpu_units > 1 or memory_mb > 64) and lane < 5000) as big_waiting,
      (select reserved_cpu_units from room) as reserved_cpu_units, (select reserved_memory_mb from room) as reserved_memory_mb
    union all
    select
      l.job_id, l.token, j.type, j.name, j.payload, l.attempts + 1, j.timeout_seconds, j.max_attempts,
      j.initial_delay_seconds, j.backoff_multiplier, l.cpu_units, l.memory_mb, l.predicted_ms, p.checkpoint, l.lane, l.key,
      l.urgency, l.nth, l.started_at is not null, null, null, null, null, null
    from lease l
    cross join lateral (
      select type, name, payload, timeout_seconds, max_attempts, initial_delay_seconds, backoff_multiplier
      from jobs
      where org_id = l.org_id
        and id = l.job_id
      offset 0
    ) j
    left join lateral (
      select checkpoint
      from job_progress
      where job_id = l.job_id
      offset 0
    ) p on true`
