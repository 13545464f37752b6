import type { Query } from '../query.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import type { JobFailure } from './jobs.ts'

/** Names a held job. Every write of a worker carries the token: a former holder matches no row. */
export type LeaseKey = { job_id: string; token: string }

/** What a worker was told of a job and says again when it ends, so that nothing need be read for it. */
export type HeldKey = LeaseKey & { org_id: string; stream_id: string; attempt: number }

/**
 * How an attempt ended. `ranMs` is its runtime by the worker's clock; `delayMs` is the wait before it is ready again.
 * `announced`: the database knows already that it was started.
 */
export type EndedAttempt = HeldKey & { ranMs: number; announced: boolean } & (
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

/** What was submitted, as the claim answers it. */
export type ClaimedRow = {
  job_id: string
  org_id: string
  stream_id: string
  type: string
  name: string
  payload: Record<string, unknown>
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
}

export type ClaimedJob = ClaimedRow & {
  token: string
  attempt: number
  /** Counts as started from the claim on. */
  started: boolean
  cpu_units: number
  memory_mb: number
  checkpoint: unknown
}

/** What the first row carries besides: which ends came too late, and what the next claim should know. */
export type ExchangeNews = {
  /** Of all leases of this claim. */
  token: string
  /** The claimed jobs in their order: id, attempt, whether it counts as started, cpu units, memory. */
  claims: [string, number, boolean, number, number][]
  /** Of those that have one. */
  checkpoints: Record<string, unknown>
  /** Jobs whose lease was no longer held. */
  lost: string[]
  /** Dependents that the ends have made ready. */
  became_ready: number
  /** Jobs wait that are bigger than the default: a claim may have passed over some. */
  big_waiting: boolean
  /** Room is kept for a job that has a reservation with this worker. */
  reserved: boolean
  /** Predicted work claimed, and how much of it because it was the oldest. */
  predicted_ms: number
  aged_ms: number
  /**
   * The smallest key claimed of each lane, and of the oldest. What was taken for a deadline or a reservation does not
   * count: it may stand in the middle of its lane.
   */
  floors: Record<string, number>
  age_floor: number | null
}

export type ExchangeRow = { news: ExchangeNews } | ({ news: null } & ClaimedRow)

/**
 * Puts the answer together. The database answers the leases in their order and the jobs in its own: to join them there
 * costs one more probe of an index for each job.
 */
export const readExchange = (rows: readonly ExchangeRow[]): { news: ExchangeNews; claimed: ClaimedJob[] } => {
  let news: ExchangeNews | undefined
  const jobs = new Map<string, ClaimedRow>()
  for (const row of rows) {
    if (row.news) news = row.news
    else jobs.set(row.job_id, row)
  }
  if (!news) throw new Error('An exchange answers at least one row')
  const { token, checkpoints } = news
  const claimed = news.claims.flatMap(([job_id, attempt, started, cpu_units, memory_mb]) => {
    const job = jobs.get(job_id)
    const lease = { token, attempt, started, cpu_units, memory_mb, checkpoint: checkpoints[job_id] ?? null }
    return job ? Object.assign(job, lease) : []
  })
  return { news, claimed }
}

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
      ended.map(({ org_id }) => org_id),
      ended.map(({ stream_id }) => stream_id),
      ended.map(({ attempt }) => attempt),
      ended.map(({ announced }) => announced),
    ],
  }
}

/** A stream whose estimate has changed by half has moved: its queued jobs are scored again. */
const MOVED = Math.log(1.5).toFixed(3)

/** How far ln(runtime) lies from the stream's mean, clipped; for the first executions there is no mean yet. */
const SURPRISE = `
                    case s.runs
                      when 0 then ln(greatest(ran_ms, 0.1))
                      else least(
                        greatest(ln(greatest(ran_ms, 0.1)) - s.mean_log, -greatest(0.3, 3 * s.deviation_log)),
                        greatest(0.3, 3 * s.deviation_log)
                      )
                    end`

const NOT_PAUSED = (row: string): string => `
        and not exists (
          select
          from pauses p
          where p.org_id = ${row}.org_id
            and (p.type is null or p.type = ${row}.type)
        )`

const CANDIDATE = `
        c.job_id, c.org_id, c.lane, c.key, c.attempts, c.suspect, c.cpu_units, c.memory_mb, c.predicted_ms`

const FITS = `
        and c.cpu_units <= (select greatest(cpu_units, ${DEFAULT_RESOURCES.cpu_units}) from room)
        and c.memory_mb <= (select greatest(memory_mb, ${DEFAULT_RESOURCES.memory_mb}) from room)
        and c.type = any ($15::text[])${NOT_PAUSED('c')}`

const TEXT = `
    with gone as (
      delete from leases
      where job_id = any ($3::uuid[])
        and token = any ($4::bigint[])
      returning job_id
    ),
    held as materialized (
      select *, now() - ran_ms * interval '1 millisecond' as started_at
      from unnest(
        $3::uuid[], $5::job_state[], $6::jsonb[], $7::jsonb[], $8::double precision[], $9::double precision[], $26::uuid[],
        $27::bigint[], $28::integer[], $29::boolean[]
      ) as e (job_id, state, result, error, delay_ms, ran_ms, org_id, stream_id, attempt, announced)
      where (job_id in (select job_id from gone)) is true
    ),
    finished as (
      insert into finished_jobs (
        org_id, job_id, stream_id, state, attempts, result, error, fingerprint, worker_id, started_at, runtime_ms
      )
      select
        org_id, job_id, stream_id, state, attempt, result, error,
        case state when 'failed' then error_fingerprint(error) end, $1::text, started_at, ran_ms
      from held
      where state in ('completed', 'failed')
    ),
    unfinished as (
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select org_id, job_id, attempt, case state when 'pending' then 'snoozed' else 'failed' end, error, $1::text, started_at
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
          select
            s.runs + m, mean_log, deviation_log,
            s.scored_log is null or abs(mean_log - s.scored_log) > ${MOVED}
          from (
            select
              m,
              coalesce(s.mean_log, 0) + step * surprise as mean_log,
              case s.runs when 0 then 0.5 else greatest(s.deviation_log + step * (spread - s.deviation_log), 0.01) end
                as deviation_log
            from (
              select
                m, surprise, spread,
                greatest(1 - 0.9::double precision ^ m, m / (s.runs + m)) as step
              from (
                select
                  count(*)::double precision as m,
                  avg(${SURPRISE}) as surprise,
                  avg(abs(${SURPRISE})) as spread
                from held
                where stream_id = s.id
                  and state = 'completed'
              ) sample
            ) weighed
          ) folded
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
        coalesce(sum(memory_mb), 0) as reserved_memory_mb
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
    aged as materialized (
      select${CANDIDATE}
      from (
        select *, sum(predicted_ms) over (rows unbounded preceding) - predicted_ms as before_ms
        from oldest
      ) c
      where before_ms < $22::double precision
    ),
    -- Each part is in its order already, and the parts are in theirs: the sums run along without a sort.
    chosen as materialized (
      select
        c.job_id, c.org_id, c.lane, c.key, c.attempts, c.cpu_units, c.memory_mb, c.predicted_ms, c.urgency,
        case when nth <= $14::int or suspect then now() end as started_at
      from (
        select
          *,
          row_number() over line as nth,
          sum(case urgency when 0 then 0 else cpu_units end) over line as cpu_sum,
          sum(case urgency when 0 then 0 else memory_mb end) over line as memory_sum
        from (
          select *, 0 as urgency
          from reserved
          union all
          select${CANDIDATE}, 1
          from urgent c
          where (c.key in (select key from reserved)) is not true
          union all
          select *, 2
          from aged c
          where (c.key in (select key from reserved union all select key from urgent)) is not true
          union all
          select *, 3
          from next c
          where (
            c.key in (select key from reserved union all select key from urgent union all select key from aged)
          ) is not true
        ) parts
        window line as (rows unbounded preceding)
      ) c
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
    token as materialized (
      select nextval('lease_tokens') as token
    ),
    leased as (
      insert into leases (job_id, org_id, worker_id, token, attempt, started_at, expires_at)
      select
        job_id, org_id, $1::text, (select token from token), attempts + 1, started_at,
        now() + $2::int * interval '1 second'
      from chosen
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt, reason, at)
      select org_id, job_id, 'running'::job_state, attempt, null, started_at
      from held
      where not announced
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
      from chosen
      where started_at is not null
    )
    select
      json_build_object(
        'token', (select token from token)::text,
        'claims', (
          select coalesce(
            json_agg(json_build_array(job_id, attempts + 1, started_at is not null, cpu_units, memory_mb)), '[]'
          )
          from chosen
        ),
        'checkpoints', (
          select coalesce(json_object_agg(job_id, checkpoint), '{}')
          from job_progress
          where job_id = any (array(select job_id from chosen))
            and checkpoint is not null
        ),
        'lost', array(select job_id from unnest($3::uuid[]) as e (job_id) where job_id not in (select job_id from gone)),
        'became_ready', case when exists (select from held) then settle_dependents(
          array(select job_id from held where state = 'completed'),
          array(select job_id from held where state = 'failed')
        ) else 0 end,
        'big_waiting', exists (select from ready_jobs where (cpu_units > 1 or memory_mb > 64) and lane < 5000),
        'reserved', (select reserved_cpu_units > 0 or reserved_memory_mb > 0 from room),
        'predicted_ms', (select coalesce(sum(predicted_ms), 0) from chosen),
        'aged_ms', (select coalesce(sum(predicted_ms) filter (where urgency = 2), 0) from chosen),
        'floors', (
          select coalesce(json_object_agg(lane, key), '{}')
          from (select lane, min(key) as key from chosen where urgency >= 2 group by lane) floor
        ),
        'age_floor', (select min(key) filter (where urgency = 2) from chosen)
      ) as news,
      null::uuid as job_id, null::uuid as org_id, null::bigint as stream_id, null as type, null as name,
      null::jsonb as payload, null::int as timeout_seconds, null::int as max_attempts,
      null::double precision as initial_delay_seconds, null::double precision as backoff_multiplier
    union all
    select
      null, id, org_id, stream_id, type, name, payload, timeout_seconds, max_attempts, initial_delay_seconds,
      backoff_multiplier
    from jobs
    where org_id = any (array(select distinct org_id from chosen))
      and id = any (array(select job_id from chosen))`
