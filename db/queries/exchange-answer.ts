import { FIRST_PARKED_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import { HAS_PAUSES_OR_LIMITS } from './exchange-claim.ts'
import { RECORDED } from './exchange-completions.ts'
import { WINDOW_NEWS } from './exchange-rerank.ts'
import type { ExchangeShape } from './exchange-shape.ts'

/**
 * One row, whatever was claimed: each row costs the server and the worker more than what is in it. Of a list that says
 * the same of each job only the first value is sent. `exchange-news.ts` reads it.
 */
export const answer = ({ order, reranked, sized, restricted, traced, ends }: ExchangeShape): string => {
  const differing = sized ? 'true' : DIFFERING
  return `
    select
      json_build_object(
        'order', '${order}',
        'token', (select token from leased)::text,
        'jobs', (${jobs(traced)}),
        'job_ids', case when ${differing} then job_ids end,${sized ? SIZES : ''}
        'attempts', ${shortened('attempts', 'some_special')},
        'lanes', ${shortened('lanes', 'of_several_lanes or some_special')},
        'keys', case when ${differing} then keys else array[lowest_key] end,
        'series_ids', ${shortened('series_ids', 'of_several_series')},
        'started', ${shortened('started_ats', 'some_special')},
        'predicted_ms', predicted_ms,${reranked ? WINDOW_NEWS : ''}
        'series', (
          select json_object_agg(id, json_build_array(org_id, type, name))
          from smartqueue.series
          where id = any (${shortened('series_ids', 'of_several_series')})
        ),
        'checkpoints', (
          select json_object_agg(job_id, checkpoint)
          from smartqueue.job_progress
          where job_id = any (job_ids)
            and checkpoint is not null
        ),${ENDS[ends]}
        'big_waiting', exists (
          select
          from smartqueue.ready_jobs
          where (cpu_units > ${DEFAULT_RESOURCES.cpu_units} or memory_mb > ${DEFAULT_RESOURCES.memory_mb})
            and lane < ${FIRST_PARKED_LANE}
        ),
        'restricted', ${HAS_PAUSES_OR_LIMITS}${restricted ? CONTENDED : ''}
      ) as news
    from summary`
}

/** Another claim was counting the running jobs of an organisation at the same time, or has just taken the last place. */
const CONTENDED = `,
        'contended', exists (select from org_room where room <= 0)`

const DIFFERING = 'of_several_series or of_several_lanes or some_special'

const shortened = (list: string, differs: string): string =>
  `case when ${differs} then ${list} else ${list}[1:1] end`

/** Null if no job is traced. */
const TRACES = `json_agg(json_build_array(id, traceparent, predicted_ms)) filter (where traceparent is not null)`

/** Only for who exports spans: it is a few percent of a small claim. */
const EXECUTIONS = `,
              'executions', case when count(traceparent) > 0 then smartqueue.executions_of(org_ids, job_ids) end`

const jobs = (traced: boolean): string => `
          select
            json_build_object(
              'ids', json_agg(id),
              'payloads', json_agg(payload),
              'timeouts', case when count(timeout_seconds) > 0 then json_agg(timeout_seconds) end,
              'p99s', case when count(predicted_p99_ms) > 0 then json_agg(predicted_p99_ms) end,
              'traces', ${TRACES}${traced ? EXECUTIONS : ''}
            )
          from smartqueue.jobs
          where org_id = any (${shortened('org_ids', 'of_several_series')})
            and id = any (job_ids)
        `

const SIZES = `
        'cpu_units', cpu_units,
        'memory_mb', memory_mb,
        'reserved', exists (select from reserved),`

/** Dependents are settled by a function, which looks after the leases are locked: it must not be asked before. */
const ENDS = {
  none: '',
  completed: `
        'recorded', ${RECORDED},
        'became_ready', case when ${RECORDED} then smartqueue.settle_dependents(:job_ids!, '{}') end,`,
  checked: `
        'lost', case when (select count(*) from held) < cardinality(:job_ids!) then array(
          select job_id from unnest(:job_ids!) as e (job_id) where job_id not in (select job_id from held)
        ) end,
        'became_ready', case when cardinality(:job_ids!) > 0 then smartqueue.settle_dependents(
          array(select job_id from held where state = 'completed'),
          array(select job_id from held where state = 'failed')
        ) end,`,
}
