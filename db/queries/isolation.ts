import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'
import { SILENT_SECONDS } from './queue-facts.ts'

/** At most one worker in so many runs suspects at a time, and at least one. */
const WORKERS_PER_ISOLATION = 4

/**
 * Picks a worker to run suspects alone, if there is a suspect that may run and not too many workers do so already: the
 * one that is predicted to finish what it has first. Answers all workers that are asked and have not taken their turn
 * yet, so that one that did not hear it the first time is told again.
 */
export const askToIsolate = (term: string): Query<{ worker_id: string; newly: boolean }> => ({
  name: 'ask-to-isolate',
  text: `
    with online as materialized (
      select worker_id, types, cpu_units, memory_mb, isolates
      from workers
      where status = 'online'
        and last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
    ),
    busy as materialized (
      select worker_id
      from online
      where isolates
      union
      select l.worker_id
      from leases l
      join online w on w.worker_id = l.worker_id
      where l.alone
    ),
    chosen as materialized (
      select w.worker_id
      from online w
      left join lateral (
        select max(j.predicted_ms - extract(epoch from now() - h.started_at) * 1000) as ms
        from held_jobs h
        join jobs j on j.org_id = h.org_id and j.id = h.job_id
        where h.worker_id = w.worker_id
      ) remaining on true
      where w.worker_id not in (select worker_id from busy)
        and (select count(*) from busy) < (select greatest(1, count(*) / ${WORKERS_PER_ISOLATION}) from online)
        and ${IN_TERM}
        and exists (
          select
          from ready_jobs r
          where r.alone
            and r.type = any (w.types)
            and r.cpu_units <= w.cpu_units
            and r.memory_mb <= w.memory_mb
            and not exists (
              select
              from pauses p
              where p.org_id = r.org_id
                and (p.type is null or p.type = r.type)
            )
            and not exists (
              select
              from quotas_of(r.org_id) q
              where q.running_jobs <= (select count(*) from held_jobs h where h.org_id = r.org_id)
            )
        )
      order by remaining.ms nulls first, w.worker_id
      limit 1
    ),
    asked as (
      update workers
      set isolates = true
      where worker_id in (select worker_id from chosen)
      returning worker_id
    )
    select worker_id, true as newly
    from asked
    union all
    select worker_id, false
    from online
    where isolates`,
  values: [term],
})

/** The worker has taken its turn, or found no suspect. */
export const endIsolation = (workerId: string): Query<never> => ({
  name: 'end-isolation',
  text: `
    update workers
    set isolates = false
    where worker_id = $1::text`,
  values: [workerId],
})
