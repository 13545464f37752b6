import { JOBS_READY } from '../channels.ts'
import {
  ACCEPTED,
  BLOCKED,
  BLOCKED_IDS,
  DEPENDENCIES,
  IS_BLOCKED,
  NO_REFUSAL,
} from './submission-dependencies.ts'

const STREAM_IDENTITY = `concat_ws(' ', org_id, type, name)`

/**
 * Kinds by members, with the stream and the estimate to go by. Left lateral joins on each row, and no joins with all
 * streams: each is one probe of an index, whatever the planner believes about the request.
 */
const REQUEST = `
    request as materialized (
      select
        k.*, s.stream_id,
        coalesce(s.mean_log, t.mean_log, $4::double precision) as log,
        coalesce(s.deviation_log, t.deviation_log, $5::double precision) as spread,
        (
          case when s.mean_log is not null then 'stream' when t.type = k.type then 'type' else 'default' end
        )::prediction_source as source
      from rows from (
        jsonb_to_recordset($1::jsonb) as (
          submission integer, org_id uuid, user_id uuid, type text, name job_name, priority job_priority, tags text[],
          timeout_seconds positive_integer, max_attempts positive_integer, initial_delay_seconds unsigned_double,
          backoff_multiplier growth_factor, cpu_units unsigned_real, memory_mb unsigned_integer, run_at timestamptz,
          deadline timestamptz, on_parent_failure parent_failure_rule, rank_base double precision, rank_slope real
        )
      ) with ordinality as k (
        submission, org_id, user_id, type, name, priority, tags, timeout_seconds, max_attempts, initial_delay_seconds,
        backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure, rank_base, rank_slope, number
      )
      cross join lateral (
        select
        from memberships
        where org_id = k.org_id
          and user_id = k.user_id
        offset 0
      ) m
      left join lateral (
        select id as stream_id, mean_log, deviation_log
        from streams
        where org_id = k.org_id
          and type = k.type
          and name = k.name
        offset 0
      ) s on true
      left join lateral (
        select type, mean_log, deviation_log
        from type_estimates
        where type = any (array[k.type, ''])
          and s.mean_log is null
        order by type desc
        limit 1
      ) t on true
    )`

type Shape = {
  /** Some job depends on others. */
  dependent: boolean
  /** Some job has a time to run at. */
  delayed: boolean
  /** There is only one kind. */
  alike: boolean
}

const compose = (shape: Shape): string => {
  const { dependent, delayed, alike } = shape
  const atRisk = `start_by < ${delayed ? 'greatest(now(), run_at)' : 'now()'}`
  return `
    with ${REQUEST.trim()},${dependent ? `${DEPENDENCIES},` : ''}${newStreams(dependent)}
    kind as materialized (
      select
        number, submission, org_id, user_id, type, name, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure, rank_base,
        rank_slope, source,
        ${STREAM_ID},
        exp(log) as predicted_ms,
        exp(log + $6::double precision * spread) as predicted_p90_ms
      from request${where([dependent && ACCEPTED])}
    ),
    job as (
      insert into jobs (
        org_id, id, created_by, stream_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, prediction_source, rank_base, rank_slope
      )
      select
        k.org_id, ($2::uuid[])[n], k.user_id, k.stream_id, k.type, k.name, $3::jsonb -> n - 1, k.priority, k.tags,
        k.timeout_seconds, k.max_attempts, k.initial_delay_seconds, k.backoff_multiplier, k.cpu_units, k.memory_mb,
        k.run_at, k.deadline, k.on_parent_failure, k.predicted_ms, k.predicted_p90_ms, k.source, k.rank_base,
        k.rank_slope
      from generate_series(1, cardinality($2::uuid[])) as n
      ${alike ? 'cross join kind k' : 'join kind k on k.number = ($7::integer[])[n]'}
      returning
        org_id, id, stream_id, type, cpu_units, memory_mb, predicted_ms, ${RANK} as rank, ${START_BY} as start_by${delayed ? ', run_at' : ''}${dependent ? ', on_parent_failure' : ''}
    ),${dependent ? `${BLOCKED},` : ''}${delayed ? `${pending(dependent)},` : ''}
    ready as (
      insert into ready_jobs (org_id, job_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
      select org_id, id, stream_id, type, lane_of(rank), 0, cpu_units, memory_mb, predicted_ms, start_by
      from job${where(isReady(shape))}${alike ? '' : IN_ORDER}
    ),
    event as (
      insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select
        ${alike ? '(array_agg(org_id))[1]' : 'org_id'}, array_agg(id), ${statesOf(shape)}, '{0}',
        case
          when bool_or(${atRisk}) then array_agg(case when ${atRisk} then 'deadline_at_risk' end)
          else '{}'
        end,
        '{}'
      from job
      ${alike ? 'having count(*) > 0' : 'group by org_id'}
    )
    select
      number::integer as kind, submission,
      (case when run_at > now() then 'pending' else 'ready' end)::job_state as status, now() as created_at,
      predicted_ms, predicted_p90_ms, source as prediction_source, null::integer as model_version, ${RANK} as rank,
      coalesce(${START_BY} < greatest(now(), run_at), false) as deadline_at_risk,
      ${ANNOUNCED} as announced,
      ${dependent ? `${BLOCKED_IDS} as blocked, ${NO_REFUSAL}` : 'null::uuid[] as blocked'}
    from kind${
      dependent
        ? `
    union all
    select null, submission, null, null, null, null, null, null, null, null, null, null, child_id, parent_id, refusal
    from refusal`
        : ''
    }`
}

/** On conflict an update and not nothing: only then is the row answered that a concurrent submission has just made. */
const newStreams = (dependent: boolean): string => `
    new_stream as (
      insert into streams as s (org_id, type, name)
      select distinct org_id, type, name
      from request${where(['stream_id is null', dependent && ACCEPTED])}
      order by org_id, type, name
      on conflict on constraint streams_identity do update
      set name = excluded.name
      returning s.id, s.org_id, s.type, s.name
    ),
    new_streams as materialized (
      select jsonb_object_agg(${STREAM_IDENTITY}, id) as ids
      from new_stream
    ),`

const STREAM_ID = `coalesce(stream_id, ((select ids from new_streams) ->> ${STREAM_IDENTITY})::bigint) as stream_id`

export const RANK = `rank_base + rank_slope * ln(predicted_ms)`
export const START_BY = `deadline - predicted_p90_ms * interval '1 millisecond'`

/** A join may have mixed them up. Ids are made in the order of the jobs. */
const IN_ORDER = `
      order by id`

const isReady = ({ dependent, delayed }: Shape) => [
  delayed && '(run_at > now()) is not true',
  dependent && `not ${IS_BLOCKED}`,
]

/**
 * If nothing has happened for a moment, workers are told within the transaction, which spares a lone job a round trip;
 * at any other time that would hold up others (`db/channels.ts`). Postgres sends what is said twice only once.
 */
export const ANNOUNCED = `case
        when run_at > now() then false
        when (select at from job_event_groups order by id desc limit 1) > now() - interval '5 milliseconds' then false
        else pg_notify('${JOBS_READY}', type) is not null
      end`

const pending = (dependent: boolean): string => `
    pending as (
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
      select id, org_id, 'pending', 0, run_at
      from job${where(['run_at > now()', dependent && `not ${IS_BLOCKED}`])}
    )`

const where = (conditions: (string | false)[]): string => {
  const holding = conditions.filter((condition) => condition !== false)
  return holding.length > 0 ? `\n      where ${holding.join('\n        and ')}` : ''
}

/** One for all, if they can only be ready. */
const statesOf = ({ dependent, delayed }: Shape): string => {
  const cases = [
    dependent && `when ${IS_BLOCKED} then 'blocked'`,
    delayed && `when run_at > now() then 'pending'`,
  ].filter((one) => one !== false)
  return cases.length > 0 ? `array_agg((case ${cases.join(' ')} else 'ready' end)::job_state)` : `'{ready}'`
}

const texts = new Map<string, { name: string; text: string }>()

/** What no job of a submission needs is left out of the text. */
export const submissionText = (shape: Shape): { name: string; text: string } => {
  const { dependent, delayed, alike } = shape
  const parts = ['submit', dependent && 'dependent', delayed && 'delayed', alike && 'alike', 'jobs']
  const name = parts.filter(Boolean).join('-')
  const made = texts.get(name) ?? { name, text: compose(shape) }
  texts.set(name, made)
  return made
}
