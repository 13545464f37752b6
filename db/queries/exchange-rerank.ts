import { FIRST_PARKED_LANE } from '../rules/lanes.ts'

/**
 * Candidates by their newest rank. The lane of a queued job is that of the estimate at the time when it became ready; the
 * leader moves jobs only if the estimate of their series has changed by half, and needs a while for a deep queue. A claim
 * of few jobs, which choosing well is worth something to, looks at some more than it takes in the order of the index, and
 * takes the best of them by the newest estimates.
 *
 * They are read without a lock, and locked one by one in their new order until there are enough: what is looked at and left
 * stays for others to claim at the same moment. If others have been faster it may get less than there is;
 * `window_full` says so.
 *
 * Only for few: each candidate costs a look at its job and at its series.
 */

/** How many more than it takes a claim looks at. */
export const SPARE_CANDIDATES = 64
/** What more jobs are claimed at once takes milliseconds each, and their order among each other is immaterial. */
export const MOST_RERANKED = 32

const WINDOW = `:claim_limit! + ${SPARE_CANDIDATES}`

/** `found` gives place, organisation, id, series, lane and key, in the order of the index. */
export const lookAtWindow = (found: string): string => `
    seen as materialized (
      select found.*, newest.lane as newest_lane
      from (
        ${found}
        limit ${WINDOW}
      ) found
      ${newestLaneOf('found')}
    ),`

/**
 * For a queued job the lane of `queue_entries`. Lateral lookups and no view of a join: planned while the tables are empty,
 * a join reads all series there will ever be.
 */
export const newestLaneOf = (queued: string): string => `cross join lateral (
        select rank_base, rank_slope, residual_log, predicted_ms
        from smartqueue.jobs
        where org_id = ${queued}.org_id
          and id = ${queued}.job_id
        offset 0
      ) j
      cross join lateral (
        select mean_log
        from smartqueue.series
        where id = ${queued}.series_id
        offset 0
      ) s
      cross join lateral (
        select smartqueue.lane_of(
          j.rank_base + j.rank_slope * coalesce(s.mean_log + j.residual_log, ln(j.predicted_ms))
        ) as lane
      ) newest`

export const WINDOW_COLUMNS = 'c.ctid as place, c.org_id, c.job_id, c.series_id, c.lane, c.key'
export const WINDOW_LIMIT = WINDOW

export const byNewestRank = (columns: string): string => `select next.*
        from (
          select place, key
          from seen
          order by newest_lane, key
        ) line
        cross join lateral (
          select ${columns}
          from smartqueue.ready_jobs c
          where c.ctid = line.place
            and c.key = line.key
          for update of c skip locked
        ) next
        limit :claim_limit!`

/** By the lane that a job was taken for: the order in which a worker starts what it got. */
export const NEWEST_LANE = `coalesce((select s.newest_lane from seen s where s.key = ready_jobs.key), lane)`

/** The oldest job that was not taken: those taken that are older have gone in the order of age, too. */
export const oldestLeft = (claimable: string): string => `
    oldest_left as materialized (
      select c.key
      from smartqueue.ready_jobs c
      where c.key >= :age_from_key!
        and c.lane < ${FIRST_PARKED_LANE}${claimable}
        and c.key <> all (array(select key from taken))
      order by c.key
      limit 1
    )`

/** What was looked at and left still stands there: a lane begins with the first that was seen of it. */
export const WINDOW_NEWS = `
        'floors', (
          select json_object_agg(lane, key)
          from (select lane, min(key) as key from seen group by lane) f
        ),
        'window_full', (select count(*) from seen) >= ${WINDOW},
        'oldest_left', (select key from oldest_left),
        'oldest_ms', (
          select sum(predicted_ms)
          from taken
          where key < coalesce((select key from oldest_left), 9223372036854775807)
        ),`
