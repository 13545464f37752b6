import type { JobPrediction } from '../learning/prediction.ts'
import type { Query, QueryValue } from '../query.ts'
import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from '../rules/estimate.ts'
import { utf8Bytes } from '../rules/utf8-bytes.ts'
import type { AnswerRow, NewJob } from './submission.ts'
import { charge } from './submission-charge.ts'
import {
  estimatedLog,
  estimatedP90Ms,
  estimatedSpread,
  INSERT_EVENTS,
  INSERT_PENDING,
  INSERT_READY,
  insertJobs,
  RANK,
  START_BY,
  startingEstimate,
} from './submission-terms.ts'
import { ANNOUNCED } from './submission-text.ts'

/**
 * Commits one job of a series that exists, without dependencies, key and callback: what most submissions to a quiet
 * system are. It does the same as `submitJobs` without what it takes for many. If the series does not exist after all,
 * the user is not a member, or it does not fit the quotas, nothing is stored and nothing answered.
 */
export const submitLoneJob = (
  orgId: string,
  userId: string,
  job: NewJob,
  payload = JSON.stringify(job.payload),
): Query<AnswerRow> => ({
  ...textOf({
    delayed: job.run_at !== null,
    predicted: job.prediction !== null,
    traced: job.traceparent !== null,
  }),
  values: [
    orgId,
    userId,
    job.id,
    job.type,
    job.name,
    payload,
    job.priority,
    job.tags,
    job.timeout_seconds,
    job.max_attempts,
    job.initial_delay_seconds,
    job.backoff_multiplier,
    job.cpu_units,
    job.memory_mb,
    job.deadline,
    job.on_parent_failure,
    job.rank_base,
    job.rank_slope,
    job.run_at,
    utf8Bytes(payload),
    ...(job.prediction ? predictedValues(job.prediction) : ESTIMATED_VALUES),
    ...(job.traceparent === null ? [] : [job.traceparent]),
  ],
})

const predictedValues = (prediction: JobPrediction): QueryValue[] => [
  prediction.p50Log,
  prediction.p90Log,
  prediction.p99Log,
  prediction.source,
  prediction.modelVersion,
  prediction.residualLog,
  prediction.promisedWaitMs,
  prediction.sample,
]

const PREDICTED = `exp($21::double precision), exp($22::double precision), $24::smartqueue.prediction_source,
        $17::double precision, $18::real, exp($23::double precision), $25::integer, $26::real, $27::double precision,
        decode($28::text, 'base64')`

const ESTIMATED_VALUES: QueryValue[] = [
  DEFAULT_ESTIMATE.meanLog,
  DEFAULT_ESTIMATE.deviationLog,
  P90_DEVIATIONS,
]

const ESTIMATED = `exp(log), ${estimatedP90Ms('$23')}, source, $17::double precision, $18::real`

/** The series, if the user is a member. */
const findSeries = (predicted: boolean): string => `
        select
          s.id as series_id${predicted ? '' : ESTIMATE}
        from smartqueue.series s${
          predicted
            ? ''
            : `
        left join lateral (${startingEstimate('s.org_id', 's.type', 's.mean_log is null')}
        ) t on true`
        }
        where s.org_id = $1::uuid
          and s.type = $4::text
          and s.name = $5::smartqueue.job_name
          and exists (select from smartqueue.memberships where org_id = $1::uuid and user_id = $2::uuid)`

/** What there is to go by without a prediction. */
const ESTIMATE = `,
          ${estimatedLog('coalesce(s.mean_log, t.mean_log, $21::double precision)')} as log,
          ${estimatedSpread('coalesce(s.deviation_log, t.deviation_log, $22::double precision)')} as spread,
          coalesce(case when s.mean_log is not null then 'series'::smartqueue.prediction_source end, t.source, 'default') as source`

const CHARGE = charge({
  org: '$1::uuid',
  jobs: '1',
  bytes: '$20::bigint',
  when: 'exists (select from found)',
})

type LoneShape = { delayed: boolean; predicted: boolean; traced: boolean }

const loneText = ({ delayed, predicted, traced }: LoneShape): string => `
    with found as materialized (${findSeries(predicted)}
    ),${CHARGE}
    job as (
      ${insertJobs({ predicted, linked: false, traced })}
      select
        $1::uuid, $3::uuid, $2::uuid, series_id, $4::text, $5::smartqueue.job_name, $6::jsonb, $7::smartqueue.job_priority, $8::text[],
        $9::smartqueue.positive_integer, $10::smartqueue.positive_integer, $11::smartqueue.unsigned_double, $12::smartqueue.growth_factor, $13::smartqueue.unsigned_real,
        $14::smartqueue.unsigned_integer, $19::timestamptz, $15::timestamptz, $16::smartqueue.parent_failure_rule,
        ${predicted ? PREDICTED : ESTIMATED}${traced ? `, $${predicted ? 29 : 24}::text` : ''}
      from found, charge
      returning
        org_id, id, series_id, type, cpu_units, memory_mb, run_at, predicted_ms, predicted_p90_ms, prediction_source,
        model_version, created_at, ${RANK} as rank, ${START_BY} as start_by,
        (case when run_at > now() then 'pending' else 'ready' end)::smartqueue.job_state as status
    ),${delayed ? PENDING : ''}
    ready as (
      ${INSERT_READY}
      select org_id, id, series_id, type, smartqueue.lane_of(rank), 0, cpu_units, memory_mb, predicted_ms, start_by
      from job${delayed ? "\n      where status = 'ready'" : ''}
    ),
    event as (
      ${INSERT_EVENTS}
      select org_id, array[id], array[status], '{0}', case when ${AT_RISK} then '{deadline_at_risk}' else '{}' end::text[], '{}'
      from job
    )
    select
      1 as kind, 1 as submission, status, created_at, predicted_ms, predicted_p90_ms, prediction_source,
      model_version, rank, coalesce(${AT_RISK}, false) as deadline_at_risk, ${ANNOUNCED} as announced,
      null::uuid[] as blocked, null::uuid as child_id, null::uuid as parent_id, null as refusal, null::jsonb as detail
    from job`

const AT_RISK = `start_by < greatest(now(), run_at)`

const PENDING = `
    pending as (
      ${INSERT_PENDING}
      select id, org_id, status, 0, run_at
      from job
      where status = 'pending'
    ),`

const texts = new Map<string, { name: string; text: string }>()

/** What the job does not have is left out of the text. */
const textOf = (shape: LoneShape): { name: string; text: string } => {
  const { delayed, predicted, traced } = shape
  const parts = ['submit-lone', predicted && 'predicted', traced && 'traced', delayed && 'delayed', 'job']
  const name = parts.filter(Boolean).join('-')
  const made = texts.get(name) ?? { name, text: loneText(shape) }
  texts.set(name, made)
  return made
}
