/**
 * Claims pass over jobs that are held back: paused, or of a type that no worker handles. So that they need not step over
 * a million of them each time, the leader parks such jobs in lanes where no claim looks.
 */

import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE, PARKING } from '../rules/lanes.ts'

/** Types that at least one worker handles. */
export const HANDLED = `
    handled as materialized (
      select distinct unnest(types) as type
      from smartqueue.workers
      where status <> 'offline'
    )`

/** Whether a job `r` is held back. Sets that are made once, and no look at the pauses for each job: a million of them may have to be asked. */
export const HELD_BACK = `(
        r.type not in (select type from handled)
        or r.org_id in (select org_id from smartqueue.pauses where type is null)
        or (r.org_id, r.type) in (select org_id, type from smartqueue.pauses where type is not null)
      )`

/** What is paused or without a worker, as a text that changes when it does. Empty: nothing is. */
export const HELD_BACK_SUMMARY = `
      (
        with ${HANDLED.trim()}
        select concat_ws(
          ' ',
          (select string_agg(org_id || '/' || coalesce(type, ''), ' ' order by org_id, type) from smartqueue.pauses),
          (
            select string_agg(type, ' ' order by type)
            from smartqueue.job_types
            where type not in (select type from handled)
          )
        )
      )`

/** How many rows were looked at, the last of them, how many moved, and how many should come back but were locked. */
export type ParkingStep = {
  looked_at: number
  last_key: string | null
  types: string[] | null
  moved: number
  missed: number
}

/** Parks what must not be claimed, among the next jobs in order of age. */
export const parkJobs = (term: string, afterKey: string, limit: number): Query<ParkingStep> => ({
  name: 'park-jobs',
  text: `
    with ${HANDLED.trim()},
    looked_at as materialized (
      select r.key, ${HELD_BACK} as held_back
      from smartqueue.ready_jobs r
      where r.key > $2::bigint
        and r.lane < ${FIRST_PARKED_LANE}
        and ${IN_TERM}
      order by r.key
      limit $3::int
    ),
    locked as materialized (
      select key
      from smartqueue.ready_jobs
      where key = any (array(select key from looked_at where held_back))
        and lane < ${FIRST_PARKED_LANE}
      for update skip locked
    ),
    moved as (
      update smartqueue.ready_jobs
      set lane = lane + ${PARKING}
      where key = any (array(select key from locked))
        and lane < ${FIRST_PARKED_LANE}
      returning type
    )
    select
      (select count(*)::int from looked_at) as looked_at, (select max(key) from looked_at) as last_key,
      null::text[] as types, (select count(*)::int from moved) as moved, 0 as missed`,
  values: [term, afterKey, limit],
})

/** Brings parked jobs back that may be claimed again, among the next in order of age. */
export const unparkJobs = (term: string, afterKey: string, limit: number): Query<ParkingStep> => ({
  name: 'unpark-jobs',
  text: `
    with ${HANDLED.trim()},
    looked_at as materialized (
      select r.key, ${HELD_BACK} as held_back
      from smartqueue.ready_jobs r
      where r.key > $2::bigint
        and r.lane >= ${FIRST_PARKED_LANE}
        and not r.alone
        and ${IN_TERM}
      order by r.key
      limit $3::int
    ),
    locked as materialized (
      select key
      from smartqueue.ready_jobs
      where key = any (array(select key from looked_at where not held_back))
        and lane >= ${FIRST_PARKED_LANE}
      for update skip locked
    ),
    moved as (
      update smartqueue.ready_jobs
      set lane = lane - ${PARKING}, key = nextval('smartqueue.ready_keys')
      where key = any (array(select key from locked))
        and lane >= ${FIRST_PARKED_LANE}
      returning type
    )
    select
      (select count(*)::int from looked_at) as looked_at, (select max(key) from looked_at) as last_key,
      (select array_agg(distinct type) from moved) as types, (select count(*)::int from moved) as moved,
      (select (count(*) filter (where not held_back))::int from looked_at) - (select count(*)::int from moved) as missed`,
  values: [term, afterKey, limit],
})
