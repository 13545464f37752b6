import { INSERT_EVENTS } from '../event-groups.ts'
import { FIRST_PARKED_LANE } from '../rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../rules/resources.ts'
import type { ExchangeShape } from './exchange-shape.ts'

export const recordEvents = ({ revises }: ExchangeShape): string => `
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

export const answer = ({ sized, revises }: ExchangeShape): string => `
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
            and lane < ${FIRST_PARKED_LANE}
        ),
        'paused', exists (select from pauses)
      ) as news,
      null::uuid as job_id, null::jsonb as payload, null::integer as timeout_seconds
    from summary
    union all
    select null, id, payload, timeout_seconds
    from jobs
    where org_id = any (array(select distinct org_id from claimed))
      and id = any (array(select job_id from claimed))`
