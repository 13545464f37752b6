import { JOBS_READY } from '../channels.ts'
import { charge } from './submission-charge.ts'
import { ACCEPTED, BLOCKED_IDS, DEPENDENCIES, JUDGED_ADMITTED } from './submission-dependencies.ts'
import { type PredictionParameters, storeAlike, storeMixed } from './submission-stores.ts'
import {
  estimatedLog,
  estimatedP90Ms,
  estimatedSpread,
  RANK,
  START_BY,
  startingEstimate,
  where,
} from './submission-terms.ts'

const SERIES_IDENTITY = `concat_ws(' ', org_id, type, name)`

/**
 * Kinds by members, with the series and the estimate to go by. Left lateral joins on each row, and no joins with all
 * series: each is one probe of an index, whatever the planner believes about the request.
 */
const request = ({ predicted, linked, owned }: Shape): string => `
    request as materialized (
      select
        k.*, s.series_id,
        ${estimatedLog('coalesce(s.mean_log, t.mean_log, $4::double precision)')} as log,
        ${estimatedSpread('coalesce(s.deviation_log, t.deviation_log, $5::double precision)')} as spread,
        coalesce(case when s.mean_log is not null then 'series'::smartqueue.prediction_source end, t.source, 'default') as found_source
      from rows from (
        jsonb_to_recordset($1::jsonb) as (
          submission integer, org_id uuid, user_id uuid, type text, name smartqueue.job_name, priority smartqueue.job_priority, tags text[],
          timeout_seconds smartqueue.positive_integer, max_attempts smartqueue.positive_integer, initial_delay_seconds smartqueue.unsigned_double,
          backoff_multiplier smartqueue.growth_factor, cpu_units smartqueue.unsigned_real, memory_mb smartqueue.unsigned_integer, run_at timestamptz,
          deadline timestamptz, on_parent_failure smartqueue.parent_failure_rule, rank_base double precision, rank_slope real${predicted ? PREDICTED_FIELDS : ''}${linked ? LINKED_FIELDS : ''}
        )
      ) with ordinality as k (
        submission, org_id, user_id, type, name, priority, tags, timeout_seconds, max_attempts, initial_delay_seconds,
        backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure, rank_base, rank_slope,
        ${predicted ? 'p50_log, p90_log, p99_log, source, model_version, residual_log, ' : ''}${linked ? 'callback_url, triggered_by, ' : ''}number
      )
${owned ? BY_MEMBERS : ''}
      left join lateral (
        select id as series_id, mean_log, deviation_log
        from smartqueue.series
        where org_id = k.org_id
          and type = k.type
          and name = k.name
        offset 0
      ) s on true
      left join lateral (${startingEstimate('k.org_id', 'k.type', `s.mean_log is null${predicted ? ' and k.p50_log is null' : ''}`)}
      ) t on true
    )`

const BY_MEMBERS = `
      cross join lateral (
        select
        from smartqueue.memberships
        where org_id = k.org_id
          and user_id = k.user_id
        offset 0
      ) m`

const LINKED_FIELDS = `,
          callback_url text, triggered_by jsonb`

const PREDICTED_FIELDS = `,
          p50_log double precision, p90_log double precision, p99_log double precision, source smartqueue.prediction_source,
          model_version integer, residual_log real`

const ESTIMATED = `
        found_source as source,
        exp(log) as predicted_ms,
        ${estimatedP90Ms('$6')} as predicted_p90_ms`

/** A kind without a prediction among others that have one goes by its estimate. */
const PREDICTED = `
        coalesce(source, found_source) as source,
        exp(coalesce(p50_log, log)) as predicted_ms,
        coalesce(exp(p90_log), ${estimatedP90Ms('$6')}) as predicted_p90_ms,
        exp(p99_log) as predicted_p99_ms,
        model_version,
        coalesce(residual_log, 0) as residual_log`

type Shape = {
  /** Some job depends on others. */
  dependent: boolean
  /** Some job has a time to run at. */
  delayed: boolean
  /** There is only one kind. */
  alike: boolean
  /** Some job has a prediction. */
  predicted: boolean
  /** Some job has a callback, or was made by something else than a call of the API. */
  linked: boolean
  /** Some job has a trace. */
  traced: boolean
  /** They are somebody's, who must be a member. */
  owned: boolean
  /**
   * `charge`: of one organisation, without keys and dependencies; if it does not fit the quotas nothing happens. `judge`:
   * whatever it is, and who may not pass is told. `free`: nobody is asked.
   */
  admission: Admission
}

export type Admission = 'charge' | 'judge' | 'free'

const compose = (shape: Shape): string => {
  const { dependent, delayed, alike, linked } = shape
  const predicted = predictionParameters(shape)
  const traces = traceParameter(shape)
  const { parts, admitted, refused } = ADMISSIONS[shape.admission](shape)
  return `
    with ${request(shape).trim()},${dependent ? `${DEPENDENCIES},` : ''}${parts}${newSeries(admitted, dependent)}
    kind as materialized (
      select
        number, submission, org_id, user_id, type, name, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure, rank_base,
        rank_slope,${linked ? ' callback_url, triggered_by,' : ''}
        ${SERIES_ID},${predicted ? PREDICTED : ESTIMATED}
      from request${where([admitted, dependent && ACCEPTED])}
    ),
    ${alike ? storeAlike({ delayed, predicted, linked, traces }) : storeMixed({ dependent, delayed, predicted, linked, traces })}
    select
      number::integer as kind, submission,
      (case when run_at > now() then 'pending' else 'ready' end)::smartqueue.job_state as status, now() as created_at,
      predicted_ms, predicted_p90_ms, source as prediction_source,
      ${predicted ? 'model_version' : 'null::integer as model_version'}, ${RANK} as rank,
      coalesce(${START_BY} < greatest(now(), run_at), false) as deadline_at_risk,
      ${ANNOUNCED} as announced,
      ${dependent ? BLOCKED_IDS : 'null::uuid[]'} as blocked, null::uuid as child_id, null::uuid as parent_id,
      null as refusal, null::jsonb as detail
    from kind${refused}${
      dependent
        ? `
    union all
    select ${NO_KIND}, child_id, parent_id, refusal, null
    from refusal`
        : ''
    }`
}

const NO_KIND = 'null, submission, null, null, null, null, null, null, null, null, null, null'

type AdmissionText = { parts: string; admitted: string; refused: string }

const ADMISSIONS: Record<Admission, (shape: Shape) => AdmissionText> = {
  free: () => ({ parts: '', admitted: 'true', refused: '' }),
  charge: (shape) => {
    const [org, jobs, bytes] = admissionParameters(shape)
    return {
      parts: charge({
        org: `${org}::uuid`,
        jobs: `${jobs}::bigint`,
        bytes: `${bytes}::bigint`,
        // All of them are members: who is not is for the other way.
        when: '(select count(*) from request) = jsonb_array_length($1::jsonb)',
      }),
      admitted: 'exists (select from charge)',
      refused: '',
    }
  },
  // Before anything is stored, and only for what is not refused already: who may not pass.
  judge: (shape) => {
    const [orgs, kinds, jobs, bytes, keys] = admissionParameters(shape)
    return {
      parts: `
    admission as materialized (
      select submission, refusal, detail
      from smartqueue.admit_submissions(
        ${orgs}::uuid[], ${kinds}::integer[], ${jobs}::bigint[], ${bytes}::bigint[], ${keys}::jsonb,
        array(select number::integer from request${where([shape.dependent && ACCEPTED])})
      )
    ),`,
      admitted: JUDGED_ADMITTED,
      refused: `
    union all
    select ${NO_KIND}, null, null, refusal, detail
    from admission`,
    }
  },
}

const firstOptional = ({ alike, dependent }: Shape): number => 7 + (alike ? 0 : 1) + (dependent ? 4 : 0)

const predictionParameters = (shape: Shape): PredictionParameters => {
  const first = firstOptional(shape)
  return shape.predicted ? { promises: `$${first}`, samples: `$${first + 1}` } : null
}

const firstAfterPrediction = (shape: Shape): number => firstOptional(shape) + (shape.predicted ? 2 : 0)

const traceParameter = (shape: Shape): string | null =>
  shape.traced ? `$${firstAfterPrediction(shape)}` : null

/** They come last, after those that a shape may not have. */
const admissionParameters = (shape: Shape): string[] => {
  const first = firstAfterPrediction(shape) + (shape.traced ? 1 : 0)
  return Array.from({ length: 5 }, (_, n) => `$${first + n}`)
}

/** On conflict an update and not nothing: only then is the row answered that a concurrent submission has just made. */
const newSeries = (admitted: string, dependent: boolean): string => `
    new_series as (
      insert into smartqueue.series as s (org_id, type, name)
      select distinct org_id, type, name
      from request${where(['series_id is null', admitted, dependent && ACCEPTED])}
      order by org_id, type, name
      on conflict on constraint series_identity do update
      set name = excluded.name
      returning s.id, s.org_id, s.type, s.name
    ),
    new_series_ids as materialized (
      select jsonb_object_agg(${SERIES_IDENTITY}, id) as ids
      from new_series
    ),`

const SERIES_ID = `coalesce(series_id, ((select ids from new_series_ids) ->> ${SERIES_IDENTITY})::bigint) as series_id`

/**
 * If nothing has happened for a moment, workers are told within the transaction, which spares a lone job a round trip;
 * at any other time that would hold up others (`db/channels.ts`). Postgres sends what is said twice only once.
 */
export const ANNOUNCED = `case
        when run_at > now() then false
        when smartqueue.newest_event_at() > now() - interval '5 milliseconds' then false
        else pg_notify('${JOBS_READY}', type) is not null
      end`

const texts = new Map<string, { name: string; text: string }>()

/** What no job of a submission needs is left out of the text. */
export const submissionText = (shape: Shape): { name: string; text: string } => {
  const { dependent, delayed, alike, predicted, linked, traced, owned, admission } = shape
  const parts = [
    'submit',
    predicted && 'predicted',
    linked && 'linked',
    traced && 'traced',
    !owned && 'unowned',
    admission === 'charge' && 'charged',
    admission === 'free' && 'free',
    dependent && 'dependent',
    delayed && 'delayed',
    alike && 'alike',
    'jobs',
  ]
  const name = parts.filter(Boolean).join('-')
  const made = texts.get(name) ?? { name, text: compose(shape) }
  texts.set(name, made)
  return made
}
