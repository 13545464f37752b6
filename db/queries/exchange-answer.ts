import { FIRST_PARKED_LANE, LOWEST_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import { RECORDED } from './exchange-completions.ts'
import type { ExchangeShape } from './exchange-shape.ts'

/** One row, whatever was claimed: each row costs the server and the worker more than what is in it. */
export const answer = (shape: ExchangeShape): string => `
    select
      json_build_object(
        'token', (select token from leased)::text,
        'jobs', case when jobs > 0 then (${PAYLOADS}) end,${shape.sized ? SIZES : ''}
        'job_ids', case when ${listed(shape)} then job_ids end,
        'attempts', case when some_repeated then array(select attempts + 1 from taken) end,
        'places', case when ${placed(shape)} then array(${PLACES[shape.order]}) end,
        'stream_ids', case when of_several_streams then array(select stream_id from taken) end,
        'started', case
          when some_suspect then to_json(array(select :starts! or suspect from taken))
          else to_json(:starts!)
        end,
        'predicted_ms', predicted_ms,
        'streams', (
          select json_object_agg(id, json_build_array(org_id, type, name))
          from streams
          where id = any (
            case when of_several_streams then array(select distinct stream_id from taken) else array[stream_id] end
          )
        ),
        'floors', case
          when of_several_places then (${FLOORS})
          when jobs > 0 then json_build_object(lane, key)
        end,
        'checkpoints', (
          select json_object_agg(job_id, checkpoint)
          from job_progress
          where job_id = any (job_ids)
            and checkpoint is not null
        ),${ENDS[shape.ends]}
        'big_waiting', exists (
          select
          from ready_jobs
          where (cpu_units > ${DEFAULT_RESOURCES.cpu_units} or memory_mb > ${DEFAULT_RESOURCES.memory_mb})
            and lane < ${FIRST_PARKED_LANE}
        ),
        'paused', exists (select from pauses)
      ) as news
    from summary`

const PAYLOADS = `
          select
            json_build_object(
              'ids', json_agg(id),
              'payloads', json_agg(payload),
              'timeouts', case when count(timeout_seconds) > 0 then json_agg(timeout_seconds) end
            )
          from jobs
          where org_id = any (
            case
              when of_several_streams then array(select distinct org_id from taken)
              else array(select org_id from taken limit 1)
            end
          )
            and id = any (job_ids)
        `

const SIZES = `
        'cpu_units', (select array_agg(cpu_units) from taken),
        'memory_mb', (select array_agg(memory_mb) from taken),
        'reserved', exists (select from reserved),`

/** Whether some list has a value for each job. */
const listed = ({ sized }: ExchangeShape): string =>
  sized ? 'true' : 'of_several_streams or of_several_places or some_repeated or some_suspect'

/** Inside a lane one order is as good as another; the oldest go first across all of them. */
const placed = ({ order }: ExchangeShape): string =>
  order === 'age' ? 'of_several_streams or of_several_places' : 'of_several_places'

const PLACES = {
  rank: `select case when start_by <= now() then ${LOWEST_LANE} else lane end from taken`,
  age: `select case when start_by <= now() then ${LOWEST_LANE} else key end from taken`,
}

const FLOORS = `
            select json_object_agg(lane, key)
            from (
              select lane, min(key) as key
              from taken
              where (start_by <= now()) is not true
              group by lane
            ) floor
          `

/** Dependents are settled by a function, which looks after the leases are locked: it must not be asked before. */
const ENDS = {
  none: '',
  completed: `
        'recorded', ${RECORDED},
        'became_ready', case when ${RECORDED} then settle_dependents(:job_ids!, '{}') end,`,
  checked: `
        'lost', case when (select count(*) from held) < cardinality(:job_ids!) then array(
          select job_id from unnest(:job_ids!) as e (job_id) where job_id not in (select job_id from held)
        ) end,
        'became_ready', case when cardinality(:job_ids!) > 0 then settle_dependents(
          array(select job_id from held where state = 'completed'),
          array(select job_id from held where state = 'failed')
        ) end,`,
}
