/**
 * How deep the queue is, by class and status, of all organisations together: a part of `sample-depths`. What class a job is of
 * stands with the job and not in the queue, and a million of them are not looked up: of many in one status some are, drawn by
 * their ids, and speak for all. The sum of a status is exact.
 */

/** Of a status. */
const LOOKED_UP = 5_000

/** Also if the queue has grown a lot since the look before, which says how many to draw. */
const MOST_LOOKED_UP = 20_000

/** Ids of jobs of one status, in the scan that counts them. */
export const drawOf = (jobId: string, step: string): string =>
  `array_agg(${jobId}) filter (where (uuid_hash_extended(${jobId}, 0) & 1048575) % ${step} = 0)`

/** Every so manieth, by the look before. */
export const stepOf = (status: string): string =>
  `(select greatest(1, coalesce(sum(${status}), 0)::bigint / ${LOOKED_UP}) from smartqueue.depth_samples)`

export const KEEP_GAUGES = `
    totals as materialized (
      select status, sum(jobs) as jobs
      from part
      group by status
    ),
    drawn as materialized (
      select p.status, p.org_id, d.job_id
      from part p
      cross join lateral unnest(p.drawn) as d (job_id)
      limit ${MOST_LOOKED_UP}
    ),
    classes as materialized (
      select d.status, j.priority as class, count(*) / sum(count(*)) over (partition by d.status) as share
      from drawn d
      cross join lateral (
        select priority
        from smartqueue.jobs
        where org_id = d.org_id
          and id = d.job_id
        offset 0
      ) j
      group by d.status, j.priority
    ),
    gauged as (
      insert into smartqueue.queue_gauges (taken_at, depths, oldest_ready_at)
      select
        now(),
        (
          select coalesce(
            jsonb_agg(
              jsonb_build_object(
                'class', coalesce(c.class, 'normal'), 'status', t.status, 'jobs', round(t.jobs * coalesce(c.share, 1))
              )
            ),
            '[]'
          )
          from totals t
          left join classes c on c.status = t.status
        ),
        (select min(oldest_ready_at) from part)
      where (select smartqueue.in_term($1::bigint))
      on conflict (only_row) do update
      set
        taken_at = excluded.taken_at,
        depths = excluded.depths,
        oldest_ready_at = excluded.oldest_ready_at
    )`
