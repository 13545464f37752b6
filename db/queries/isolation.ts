import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'
import { SILENT_SECONDS } from './queue-facts.ts'

/** At most one worker in this many runs suspects at a time, but always at least one. */
const WORKERS_PER_ISOLATION = 4
/** A drain of this length is always acceptable. */
const SHORT_DRAIN_MS = 60_000

/**
 * Picks a worker to run suspects alone, if a suspect may run and not too many workers isolate already: the
 * worker that is predicted to finish its jobs first. While a worker drains, its free slots are idle, so it is not
 * asked to drain for longer than the suspects have already waited. A worker that drains for suspects that are gone is
 * released. Returns all workers that should isolate and have not taken their turn yet. They are notified
 * repeatedly; a worker that is no longer notified goes back to ordinary work.
 */
export const askToIsolate = (term: string): Query<{ worker_id: string; newly: boolean }> => ({
  name: 'ask-to-isolate',
  text: `
    with suspect as materialized (
      select
        r.type, r.cpu_units, r.memory_mb,
        (
          select extract(epoch from now() - max(a.finished_at)) * 1000
          from smartqueue.attempts a
          where a.org_id = r.org_id
            and a.job_id = r.job_id
            and a.outcome = 'lost'
        ) as waited_ms
      from smartqueue.ready_jobs r
      where r.alone
        and not exists (
          select
          from smartqueue.pauses p
          where p.org_id = r.org_id
            and (p.type is null or p.type = r.type)
        )
        and not exists (
          select
          from smartqueue.quotas_of(r.org_id) q
          where q.running_jobs <= (select count(*) from smartqueue.held_jobs h where h.org_id = r.org_id)
        )
    ),
    online as materialized (
      select
        w.worker_id, w.isolates,
        exists (
          select
          from suspect s
          where s.type = any (w.types)
            and s.cpu_units <= w.cpu_units
            and s.memory_mb <= w.memory_mb
        ) as is_able
      from smartqueue.workers w
      where w.status = 'online'
        and w.last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
        and ${IN_TERM}
    ),
    busy as materialized (
      select worker_id
      from online
      where isolates
        and is_able
      union
      select l.worker_id
      from smartqueue.leases l
      join online w on w.worker_id = l.worker_id
      where l.alone
    ),
    chosen as materialized (
      select w.worker_id
      from online w
      left join lateral (
        select max(j.predicted_ms - extract(epoch from now() - h.started_at) * 1000) as ms
        from smartqueue.held_jobs h
        join smartqueue.jobs j on j.org_id = h.org_id and j.id = h.job_id
        where h.worker_id = w.worker_id
      ) remaining on true
      where w.is_able
        and w.worker_id not in (select worker_id from busy)
        and coalesce(remaining.ms, 0) <= (select greatest(${SHORT_DRAIN_MS}, max(waited_ms)) from suspect)
        and (select count(*) from busy) < (select greatest(1, count(*) / ${WORKERS_PER_ISOLATION}) from online)
      order by remaining.ms nulls first, w.worker_id
      limit 1
    ),
    told as materialized (
      select worker_id, true as isolates
      from chosen
      union all
      select worker_id, is_able
      from online
      where isolates
    ),
    changed as (
      update smartqueue.workers w
      set isolates = t.isolates
      from told t
      where w.worker_id = t.worker_id
        and w.isolates <> t.isolates
      returning w.worker_id
    )
    select worker_id, worker_id in (select worker_id from changed) as newly
    from told
    where isolates`,
  values: [term],
})

/** Called when the worker has taken its turn or found no suspect. */
export const endIsolation = (workerId: string): Query<never> => ({
  name: 'end-isolation',
  text: `
    update smartqueue.workers
    set isolates = false
    where worker_id = $1::text`,
  values: [workerId],
})
