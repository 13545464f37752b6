import { INSERT_EVENTS } from '../event-groups.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'

/** What an exchange needs; everything else is left out of its text. */
export type ExchangeShape = {
  order: 'rank' | 'age'
  sized: boolean
  /** Some handler returned something. */
  results: boolean
  /** Attempts ended otherwise than completed, or jobs claimed ahead were started: leases change. */
  revises: boolean
}

/** Every value that a shape may ask for, with its type. */
const PARAMETERS = {
  worker_id: 'text',
  lease_seconds: 'integer',
  job_ids: 'uuid[]',
  tokens: 'bigint[]',
  orgs: 'uuid[]',
  org_numbers: 'integer[]',
  stream_ids: 'bigint[]',
  attempts: 'integer[]',
  ran_ms: 'double precision[]',
  announced: 'boolean[]',
  results: 'jsonb[]',
  states: 'job_state[]',
  errors: 'jsonb[]',
  delays_ms: 'double precision[]',
  sample_streams: 'bigint[]',
  sample_runs: 'double precision[]',
  sample_means: 'double precision[]',
  sample_spreads: 'double precision[]',
  closed: 'bigint[]',
  started_ids: 'uuid[]',
  started_tokens: 'bigint[]',
  started_ms: 'double precision[]',
  claim_limit: 'integer',
  starts: 'boolean',
  types: 'text[]',
  from_lanes: 'smallint[]',
  from_keys: 'bigint[]',
  to_lanes: 'smallint[]',
  to_keys: 'bigint[]',
  age_from_key: 'bigint',
  free_cpu_units: 'double precision',
  free_memory_mb: 'double precision',
  ahead: 'integer',
} as const

export type ExchangeParameter = keyof typeof PARAMETERS

type Text = { name: string; text: string; parameters: ExchangeParameter[] }

const texts = new Map<string, Text>()

export const exchangeText = (shape: ExchangeShape): Text => {
  const { order, sized, results, revises } = shape
  const name = ['exchange-jobs', order, sized && 'sized', results && 'results', revises && 'revises']
    .filter(Boolean)
    .join('-')
  const known = texts.get(name)
  if (known) return known
  const parameters: ExchangeParameter[] = []
  const written = compose(shape).replaceAll(/:(\w+)!/g, (_, parameter: ExchangeParameter) => {
    if (!parameters.includes(parameter)) parameters.push(parameter)
    return `$${parameters.indexOf(parameter) + 1}::${PARAMETERS[parameter]}`
  })
  const made = { name, text: written, parameters }
  texts.set(name, made)
  return made
}

const compose = (shape: ExchangeShape): string =>
  [
    `
    with${recordEnds(shape)},`,
    shape.revises ? `${recordFailures},${reviseLeases},` : '',
    `${learn},${shape.sized ? claimSized(shape) : claimPlain(shape)},${leaseClaimed(shape)},${shape.sized ? FULFILLED : ''}${recordEvents(shape)}`,
    answer(shape),
  ].join('')

/**
 * The lease row is locked, so that a cancellation, which takes a job out of it, comes before or after and not between.
 * All at once and in the order of their tokens, as a renewal does: whoever locks several must not wait crosswise.
 * Arrays by their subscripts and not by unnest, which stores each of them once more.
 */
const recordEnds = ({ results, revises }: ExchangeShape): string => `
    lease as materialized (
      select token, job_ids
      from leases
      where token = any (${revises ? ':tokens! || :started_tokens!' : ':tokens!'})
      order by token
      for update
    ),
    held as materialized (
      select
        (:job_ids!)[n] as job_id,
        (:orgs!)[(:org_numbers!)[n]] as org_id,
        (:stream_ids!)[n] as stream_id,
        (:attempts!)[n] as attempt,
        (:ran_ms!)[n] as ran_ms,
        now() - (:ran_ms!)[n] * interval '1 millisecond' as started_at,
        (:announced!)[n] as announced${
          revises
            ? `,
        (:states!)[n] as state,
        (:errors!)[n] as error,
        (:delays_ms!)[n] as delay_ms`
            : ''
        }${
          results
            ? `,
        (:results!)[n] as result`
            : ''
        }
      from generate_series(1, cardinality(:job_ids!)) as n
      where (
        (:job_ids!)[n] in (select unnest(job_ids) from lease${revises ? ' where token = any (:tokens!)' : ''})
      ) is true
    ),
    completed as (
      insert into finished_jobs (
        org_id, job_id, stream_id, state, attempts, worker_id, started_at, runtime_ms${results ? ', result' : ''}
      )
      select
        org_id, job_id, stream_id, 'completed', attempt, :worker_id!, started_at, ran_ms${results ? ', result' : ''}
      from held${
        revises
          ? `
      where state = 'completed'`
          : ''
      }
    ),
    closed as (
      delete from leases
      where token = any (:closed!)
    )`

const recordFailures = `
    failed as (
      insert into finished_jobs (
        org_id, job_id, stream_id, state, attempts, error, fingerprint, worker_id, started_at, runtime_ms
      )
      select
        org_id, job_id, stream_id, state, attempt, error, error_fingerprint(error), :worker_id!, started_at, ran_ms
      from held
      where state = 'failed'
    ),
    unfinished as (
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select
        org_id, job_id, attempt, case state when 'pending' then 'snoozed' else 'failed' end, error, :worker_id!,
        started_at
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
    )`

/**
 * A job that comes back leaves its lease: only a completed one, which cannot, may stay in it until it is closed.
 * Started jobs get their time.
 */
const reviseLeases = `
    begun as materialized (
      select
        l.token, h.org_id, h.job_id, h.attempt,
        now() - (:started_ms!)[array_position(:started_ids!, h.job_id)] * interval '1 millisecond' as started_at
      from leases l
      cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where l.token = any (:started_tokens!)
        and h.job_id = any (:started_ids!)
        and h.started_at is null
    ),
    revised as (
      update leases l
      set
        (job_ids, org_ids, attempts, started_ats) = (
          select
            coalesce(array_agg(h.job_id order by n), '{}'), coalesce(array_agg(h.org_id order by n), '{}'),
            coalesce(array_agg(h.attempt order by n), '{}'),
            coalesce(array_agg(coalesce(h.started_at, b.started_at) order by n), '{}')
          from unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
            with ordinality as h (job_id, org_id, attempt, started_at, n)
          left join begun b on b.token = l.token and b.job_id = h.job_id
          where h.job_id not in (select job_id from held where state <> 'completed')
        )
      where l.token = any (:tokens! || :started_tokens!)
        and l.token <> all (:closed!)
    )`

/** Half as long again, or two thirds: then the queued jobs of a stream are scored again. */
const MOVED = Math.log(1.5).toFixed(3)

/** db/rules/estimate.ts says why. A group of which a part came too late teaches nothing. */
const learn = `
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
              case s.runs when 0 then log else s.mean_log + step * surprise end as mean_log,
              case s.runs
                when 0 then 0.5
                else greatest(s.deviation_log + step * (abs(surprise) + spread - s.deviation_log), 0.01)
              end as deviation_log
            from (
              select
                m, log, spread,
                greatest(1 - 0.9::double precision ^ m, m / (s.runs + m)) as step,
                least(
                  greatest(log - s.mean_log, -greatest(0.3, 3 * s.deviation_log)),
                  greatest(0.3, 3 * s.deviation_log)
                ) as surprise
              from (
                select
                  (:sample_runs!)[n] as m, (:sample_means!)[n] as log, (:sample_spreads!)[n] as spread
                from array_position(:sample_streams!, s.id) as n
              ) sample
            ) weighed
          ) folded
        )
      where s.id = any (:sample_streams!)
        and (select count(*) from held) = cardinality(:job_ids!)
    )`

const CLAIMABLE = `
            and c.type = any (:types!)
            and (
              (select not exists (select from pauses))
              or not exists (
                select
                from pauses p
                where p.org_id = c.org_id
                  and (p.type is null or p.type = c.type)
              )
            )`

/** Where candidates come from, in order: a latest start that has come, then rank or age. */
const sources = (shape: ExchangeShape, columns: string, fits: string): string => `
        select *
        from (
          select ${columns}
          from ready_jobs c
          where c.start_by <= now()
            and c.start_by is not null
            and c.lane < 5000${CLAIMABLE}${fits}
          order by c.start_by
          limit :claim_limit!
          for update of c skip locked
        ) urgent
        union all
        ${shape.order === 'age' ? byAge(columns, fits) : byRank(columns, fits)}`

const NOT_URGENT = `
            and (c.start_by is null or c.start_by > now())`

const byAge = (columns: string, fits: string): string => `select *
        from (
          select ${columns}
          from ready_jobs c
          where c.key >= :age_from_key!
            and c.lane < 5000${CLAIMABLE}${NOT_URGENT}${fits}
          order by c.key
          limit :claim_limit!
          for update of c skip locked
        ) oldest`

const byRank = (columns: string, fits: string): string => `select next.*
        from (
          select
            (:from_lanes!)[n] as from_lane, (:from_keys!)[n] as from_key,
            (:to_lanes!)[n] as to_lane, (:to_keys!)[n] as to_key
          from generate_series(1, cardinality(:from_lanes!)) as n
        ) part
        cross join lateral (
          select ${columns}
          from ready_jobs c
          where (c.lane, c.key) >= (part.from_lane, part.from_key)
            and (c.lane, c.key) < (part.to_lane, part.to_key)${CLAIMABLE}${NOT_URGENT}${fits}
          order by c.lane, c.key
          limit :claim_limit!
          for update of c skip locked
        ) next`

const ONE_SIZE = `
            and c.cpu_units <= ${DEFAULT_RESOURCES.cpu_units}
            and c.memory_mb <= ${DEFAULT_RESOURCES.memory_mb}`

const claimPlain = (shape: ExchangeShape): string => `
    chosen as materialized (
      select place
      from (${sources(shape, 'c.ctid as place', ONE_SIZE)}
      ) candidate
      limit :claim_limit!
    )`

/**
 * A job fits if it fits into what is free; one of the default size always, because it may be claimed ahead. The sums
 * run in the order of the candidates.
 */
const FITS = `
            and c.cpu_units <= (select greatest(cpu_units, ${DEFAULT_RESOURCES.cpu_units}) from room)
            and c.memory_mb <= (select greatest(memory_mb, ${DEFAULT_RESOURCES.memory_mb}) from room)
            and c.job_id not in (select job_id from reserved)`

const claimSized = (shape: ExchangeShape): string => `
    reserved as materialized (
      select job_id, org_id, cpu_units, memory_mb
      from reservations
      where worker_id = :worker_id!
    ),
    room as materialized (
      select
        :free_cpu_units! - coalesce(sum(cpu_units), 0) as cpu_units,
        :free_memory_mb! - coalesce(sum(memory_mb), 0) as memory_mb
      from reserved
    ),
    chosen as materialized (
      select place
      from (
        select place, true as reserved, 0 as nth, 0 as cpu_sum, 0 as memory_sum
        from (
          select c.ctid as place
          from reserved v
          join ready_jobs c on c.org_id = v.org_id and c.job_id = v.job_id
          where c.lane < 5000
            and c.cpu_units <= :free_cpu_units!
            and c.memory_mb <= :free_memory_mb!${CLAIMABLE}
          limit :claim_limit!
          for update of c skip locked
        ) kept
        union all
        select place, false, row_number() over line, sum(cpu_units) over line, sum(memory_mb) over line
        from (${sources(shape, 'c.ctid as place, c.cpu_units, c.memory_mb', FITS)}
        ) candidate
        window line as (rows unbounded preceding)
      ) summed
      where reserved
        or (
          nth <= :claim_limit!
          and cpu_sum <= (select cpu_units from room) + :ahead! * ${DEFAULT_RESOURCES.cpu_units}
          and memory_sum <= (select memory_mb from room) + :ahead! * ${DEFAULT_RESOURCES.memory_mb}
        )
    )`

/** Jobs whose latest start has come stand before all lanes. */
const FIRST_LANE = -5_000

/**
 * By place: the rows are locked, so that no index need be asked again. A row that was moved by someone between the
 * snapshot and the lock is not found there; it stays ready.
 */
const leaseClaimed = ({ order }: ExchangeShape): string => `
    taken as (
      delete from ready_jobs
      where ctid = any (array(select place from chosen))
      returning
        job_id, org_id, stream_id, lane, key, start_by, attempts, suspect, cpu_units, memory_mb, predicted_ms
    ),
    claimed as materialized (
      select
        job_id, org_id, stream_id, lane, key, attempts + 1 as attempt, cpu_units, memory_mb, predicted_ms,
        coalesce(start_by <= now(), false) as urgent,
        case when start_by <= now() then ${FIRST_LANE} else ${order === 'age' ? 'key' : 'lane'} end as place,
        case when :starts! or suspect then now() end as started_at
      from taken
    ),
    leased as (
      insert into leases (token, worker_id, expires_at, job_ids, org_ids, attempts, started_ats)
      select
        nextval('lease_tokens'), :worker_id!, now() + :lease_seconds! * interval '1 second', array_agg(job_id),
        array_agg(org_id), array_agg(attempt), array_agg(started_at)
      from claimed
      having count(*) > 0
      returning token
    ),
    summary as materialized (
      select
        array_agg(job_id) as job_ids,
        case when max(attempt) > 1 then array_agg(attempt) end as attempts,
        case when min(place) < max(place) then array_agg(place) end as places,
        case when min(stream_id) < max(stream_id) then array_agg(stream_id) end as stream_ids,
        case when bool_or(started_at is null) then array_agg(started_at is not null) end as started,
        sum(predicted_ms) as predicted_ms
      from claimed
    )`

const FULFILLED = `
    fulfilled as (
      delete from reservations
      where job_id = any (array(select job_id from claimed))
    ),`

const recordEvents = ({ revises }: ExchangeShape): string => `
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'running'::job_state as state, attempt, null as reason, started_at as at
        from held
        where not announced
        union all${
          revises
            ? `
        select org_id, job_id, 'running', attempt, null, started_at
        from begun
        union all
        select
          org_id, job_id, state, case state when 'pending' then attempt - 1 else attempt end,
          case state when 'pending' then 'snoozed' else error ->> 'code' end, now()
        from held`
            : `
        select org_id, job_id, 'completed', attempt, null, now()
        from held`
        }
        union all
        select org_id, job_id, 'running', attempt, null, started_at
        from claimed
        where started_at is not null
      ) transition
      group by org_id
    )`

const answer = ({ sized, revises }: ExchangeShape): string => `
    select
      json_build_object(
        'token', (select token from leased)::text,
        'job_ids', job_ids,
        'attempts', attempts,
        'places', places,
        'stream_ids', stream_ids,
        'started', started,${
          sized
            ? `
        'cpu_units', (select array_agg(cpu_units) from claimed),
        'memory_mb', (select array_agg(memory_mb) from claimed),
        'reserved', exists (select from reserved),`
            : ''
        }
        'predicted_ms', predicted_ms,
        'streams', (
          select json_object_agg(id, json_build_array(org_id, type, name))
          from streams
          where id = any (array(select distinct stream_id from claimed))
        ),
        'floors', (
          select json_object_agg(lane, key)
          from (select lane, min(key) as key from claimed where not urgent group by lane) floor
        ),
        'checkpoints', (
          select json_object_agg(job_id, checkpoint)
          from job_progress
          where job_id = any (job_ids)
            and checkpoint is not null
        ),
        'lost', case when (select count(*) from held) < cardinality(:job_ids!) then array(
          select job_id from unnest(:job_ids!) as e (job_id) where job_id not in (select job_id from held)
        ) end,
        'became_ready', case when cardinality(:job_ids!) > 0 then settle_dependents(
          array(select job_id from held${revises ? " where state = 'completed'" : ''}),
          ${revises ? `array(select job_id from held where state = 'failed')` : `'{}'`}
        ) else 0 end,
        'big_waiting', exists (
          select
          from ready_jobs
          where (cpu_units > ${DEFAULT_RESOURCES.cpu_units} or memory_mb > ${DEFAULT_RESOURCES.memory_mb})
            and lane < 5000
        )
      ) as news,
      null::uuid as job_id, null::jsonb as payload, null::integer as timeout_seconds
    from summary
    union all
    select null, id, payload, timeout_seconds
    from jobs
    where org_id = any (array(select distinct org_id from claimed))
      and id = any (array(select job_id from claimed))`
