import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE } from '../rules/lanes.ts'

/**
 * Series whose estimate has moved since their queued jobs were scored, some of them at a time: completions wait for the
 * rows of their series. Not while all queued jobs stand in one lane: there is no order to mend then, and to move a deep
 * queue from lane to lane costs as much as to work it off.
 */
export const takeMovedSeries = (term: string, limit: number): Query<{ id: string }> => ({
  name: 'take-moved-series',
  text: `
    update smartqueue.series
    set scored_log = mean_log, moved = false
    where id = any (
      array(
        select id
        from smartqueue.series
        where moved
          and ${IN_TERM}
          and (select min(lane) from smartqueue.ready_jobs where lane < ${FIRST_PARKED_LANE})
            < (select max(lane) from smartqueue.ready_jobs where lane < ${FIRST_PARKED_LANE})
        limit $2::int
        for update skip locked
      )
    )
    returning id`,
  values: [term, limit],
})

/**
 * Puts queued jobs of these series into the lane that the newest estimate gives them, among the next jobs in order
 * of age. A job that changes its lane goes to the end of the new one: keys only grow inside a lane.
 */
export const rescoreJobs = (sweep: {
  term: string
  seriesIds: readonly string[]
  afterKey: string
  limit: number
}): Query<{ looked_at: number; last_key: string | null; moved: number }> => ({
  name: 'rescore-jobs',
  text: `
    with looked_at as materialized (
      select r.key, r.job_id, r.org_id, r.series_id = any ($2::bigint[]) as concerned
      from smartqueue.ready_jobs r
      where r.key > $3::bigint
        and r.lane < ${FIRST_PARKED_LANE}
        and ${IN_TERM}
      order by r.key
      limit $4::int
    ),
    misplaced as materialized (
      select r.key, q.lane
      from looked_at a
      join smartqueue.queue_entries q on q.org_id = a.org_id and q.job_id = a.job_id
      cross join lateral (
        select key, lane
        from smartqueue.ready_jobs
        where key = a.key
          and lane < ${FIRST_PARKED_LANE}
        for update skip locked
      ) r
      where a.concerned
        and r.lane <> q.lane
    ),
    moved as (
      update smartqueue.ready_jobs r
      set lane = m.lane, key = nextval('smartqueue.ready_keys')
      from misplaced m
      where r.key = m.key
        and r.lane < ${FIRST_PARKED_LANE}
      returning r.job_id
    )
    select
      (select count(*)::int from looked_at) as looked_at, (select max(key) from looked_at) as last_key,
      (select count(*)::int from moved) as moved`,
  values: [sweep.term, sweep.seriesIds, sweep.afterKey, sweep.limit],
})
