import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE } from '../rules/lanes.ts'

export const BIG = `(cpu_units > 1 or memory_mb > 64)`

const CAN_HOLD = `r.type = any (h.types) and r.cpu_units <= h.cpu_units and r.memory_mb <= h.memory_mb`

/**
 * A job that is bigger than most is overtaken by smaller ones that fit into what is free. When it has waited for a
 * while and it would be its turn, by rank or by age, a worker that could hold it keeps room: the one with the most
 * room left, and one job for each worker. What is no longer needed is dropped.
 */
export const reserveCapacity = (
  term: string,
  afterSeconds: number,
): Query<{ job_id: string; worker_id: string }> => ({
  name: 'reserve-capacity',
  text: `
    with pointless as (
      delete from smartqueue.reservations v
      where ${IN_TERM}
        and (
          not exists (
            select
            from smartqueue.ready_jobs r
            where r.org_id = v.org_id
              and r.job_id = v.job_id
              and r.lane < ${FIRST_PARKED_LANE}
          )
          or not exists (select from smartqueue.workers w where w.worker_id = v.worker_id and w.status = 'online')
        )
      returning job_id
    ),
    host as materialized (
      select w.worker_id, w.types, w.cpu_units, w.memory_mb, w.slots - w.running as free_slots
      from smartqueue.workers w
      where w.status = 'online'
        and not exists (
          select
          from smartqueue.reservations v
          where v.worker_id = w.worker_id
            and v.job_id not in (select job_id from pointless)
        )
    ),
    -- Only what some worker can hold now: a job that none can must not stand in the way of the next.
    big as materialized (
      select r.job_id, r.org_id, r.type, r.cpu_units, r.memory_mb, r.ready_at
      from smartqueue.ready_jobs r
      where ${BIG}
        and r.lane < ${FIRST_PARKED_LANE}
        and r.ready_at < now() - $2::int * interval '1 second'
        and ${IN_TERM}
        and not exists (select from smartqueue.reservations v where v.job_id = r.job_id)
        and (
          not exists (
            select
            from smartqueue.ready_jobs s
            where (s.lane, s.key) < (r.lane, r.key)
              and not ${BIG}
          )
          or not exists (
            select
            from smartqueue.ready_jobs s
            where s.key < r.key
              and s.lane < ${FIRST_PARKED_LANE}
              and not ${BIG}
          )
        )
        and exists (select from host h where ${CAN_HOLD})
      order by r.ready_at
      limit 1
    )
    insert into smartqueue.reservations (job_id, org_id, worker_id, cpu_units, memory_mb)
    select r.job_id, r.org_id, h.worker_id, r.cpu_units, r.memory_mb
    from big r
    join host h on ${CAN_HOLD}
    order by h.free_slots desc, h.worker_id
    limit 1
    returning job_id, worker_id`,
  values: [term, afterSeconds],
})
