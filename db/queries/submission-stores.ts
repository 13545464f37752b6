import { BLOCKED, IS_BLOCKED } from './submission-dependencies.ts'
import {
  INSERT_EVENTS,
  INSERT_PENDING,
  INSERT_READY,
  insertJobs,
  RANK,
  START_BY,
  where,
} from './submission-terms.ts'

/** Of each member its number, from 1, and the kind that it is of. */
const membersOf = (alike: boolean): string => `
      from generate_series(1, cardinality($2::uuid[])) as n
      ${alike ? 'cross join kind k' : 'join kind k on k.number = ($7::integer[])[n]'}`

/** Where the promises and the samples of the jobs stand among the parameters. */
export type PredictionParameters = { promises: string; samples: string } | null

type StoredShape = {
  delayed: boolean
  predicted: PredictionParameters
  linked: boolean
  /** Where the traces of the jobs stand: one of each, or one for all. */
  traces: string | null
}

const storeJobs = (alike: boolean, { predicted, linked, traces }: StoredShape): string => `
      ${insertJobs({ predicted: predicted !== null, linked, traced: traces !== null })}
      select
        k.org_id, ($2::uuid[])[n], k.user_id, k.series_id, k.type, k.name, $3::jsonb -> n - 1, k.priority, k.tags,
        k.timeout_seconds, k.max_attempts, k.initial_delay_seconds, k.backoff_multiplier, k.cpu_units, k.memory_mb,
        k.run_at, k.deadline, k.on_parent_failure, k.predicted_ms, k.predicted_p90_ms, k.source, k.rank_base,
        k.rank_slope${predicted ? predictedColumns(predicted) : ''}${linked ? ', k.callback_url, k.triggered_by' : ''}${traces ? traceColumn(traces) : ''}${membersOf(alike)}`

const predictedColumns = ({ promises, samples }: NonNullable<PredictionParameters>): string => `,
        k.predicted_p99_ms, k.model_version, k.residual_log, (${promises}::double precision[])[n],
        decode(${samples}::jsonb ->> n - 1, 'base64')`

const traceColumn = (traces: string): string => `,
        (${traces}::text[])[least(n, cardinality(${traces}::text[]))]`

const IS_PENDING = 'run_at > now()'
const IS_NOT_PENDING = `(${IS_PENDING}) is not true`
const isAtRisk = (startBy: string, delayed: boolean): string =>
  `${startBy} < ${delayed ? 'greatest(now(), run_at)' : 'now()'}`

/** All of one kind, and so in one state: each table is filled from the kind itself, and not from what another has stored. */
export const storeAlike = (shape: StoredShape): string => {
  const { delayed } = shape
  return `job as (${storeJobs(true, shape)}
    ),${delayed ? ALIKE_PENDING : ''}
    ready as (
      ${INSERT_READY}
      select
        k.org_id, ($2::uuid[])[n], k.series_id, k.type, smartqueue.lane_of(${RANK}), 0, k.cpu_units, k.memory_mb, k.predicted_ms,
        ${START_BY}${membersOf(true)}${where([delayed && IS_NOT_PENDING])}
    ),
    event as (
      ${INSERT_EVENTS}
      select
        org_id, $2::uuid[], ${delayed ? `array[(case when ${IS_PENDING} then 'pending' else 'ready' end)::smartqueue.job_state]` : `'{ready}'`}, '{0}',
        case when ${isAtRisk(START_BY, delayed)} then '{deadline_at_risk}' else '{}' end::text[], '{}'
      from kind
    )`
}

const ALIKE_PENDING = `
    pending as (
      ${INSERT_PENDING}
      select ($2::uuid[])[n], k.org_id, 'pending', 0, k.run_at${membersOf(true)}${where([IS_PENDING])}
    ),`

export const storeMixed = (shape: StoredShape & { dependent: boolean }): string => {
  const { dependent, delayed } = shape
  const atRisk = isAtRisk('start_by', delayed)
  const isUnblocked = dependent && `not ${IS_BLOCKED}`
  return `job as (${storeJobs(false, shape)}
      returning
        org_id, id, series_id, type, cpu_units, memory_mb, predicted_ms, ${RANK} as rank, ${START_BY} as start_by${delayed ? ', run_at' : ''}${dependent ? ', on_parent_failure' : ''}
    ),${dependent ? `${BLOCKED},` : ''}${delayed ? pending(isUnblocked) : ''}
    ready as (
      ${INSERT_READY}
      select org_id, id, series_id, type, smartqueue.lane_of(rank), 0, cpu_units, memory_mb, predicted_ms, start_by
      from job${where([delayed && IS_NOT_PENDING, isUnblocked])}
      -- The join may have mixed them up. Ids are made in the order of the jobs.
      order by id
    ),
    event as (
      ${INSERT_EVENTS}
      select
        org_id, array_agg(id), ${statesOf({ dependent, delayed })}, '{0}',
        case
          when bool_or(${atRisk}) then array_agg(case when ${atRisk} then 'deadline_at_risk' end)
          else '{}'
        end,
        '{}'
      from job
      group by org_id
    )`
}

const pending = (isUnblocked: string | false): string => `
    pending as (
      ${INSERT_PENDING}
      select id, org_id, 'pending', 0, run_at
      from job${where([IS_PENDING, isUnblocked])}
    ),`

/** One for all, if they can only be ready. */
const statesOf = ({ dependent, delayed }: { dependent: boolean; delayed: boolean }): string => {
  const cases = [
    dependent && `when ${IS_BLOCKED} then 'blocked'`,
    delayed && `when ${IS_PENDING} then 'pending'`,
  ].filter((one) => one !== false)
  return cases.length > 0
    ? `array_agg((case ${cases.join(' ')} else 'ready' end)::smartqueue.job_state)`
    : `'{ready}'`
}
