/**
 * Inputs for the replay of the queue: ended attempts in commit order. A *stretch* ends when no job waits, so that the
 * order of the queue has had its whole effect.
 */
import type { Query } from '../query.ts'

/** A row of `executions`. */
export type Place = { xid: string; id: string }

export type StretchRow = {
  jobs: number
  /** The limit is reached. */
  more: boolean
  /** No job waits at this moment. */
  idle: boolean
  age_seconds: number | null
  /** The cursor, and the last row of the stretch. Null if nothing has ended. */
  start: Place
  next: Place | null
}

export type StretchLimits = { rows: number; jobs: number }

/** How much has ended since the last stretch was closed, and whether this one can be. */
export const measureStretch = (limits: StretchLimits): Query<StretchRow> => ({
  name: 'measure-stretch',
  text: `
    with stretch as materialized (
      select xid, id, at, upto
      from smartqueue.gain_stretch($1::int, $2::int)
    )
    select
      coalesce(max(upto), 0)::int as jobs, count(*) = $1::int or coalesce(max(upto), 0) >= $2::int as more,
      -- From lane 5,000 on jobs are parked.
      not exists (select from smartqueue.ready_jobs where lane < 5000) as idle,
      extract(epoch from now() - min(at))::double precision as age_seconds,
      (
        select jsonb_build_object('xid', xid::text, 'id', id::text)
        from smartqueue.event_cursors
        where reader = 'gains'
      ) as start,
      (
        select jsonb_build_object('xid', xid::text, 'id', id::text)
        from stretch
        order by stretch.xid desc, stretch.id desc
        limit 1
      ) as next
    from stretch`,
  values: [limits.rows, limits.jobs],
})

/** Times in milliseconds since 1970. */
export type EndedAttemptRow = {
  org_id: string
  /** When it could have started. Of a later try that is not known: when it did. */
  ready_ms: number
  start_ms: number
  end_ms: number
  /** A first try, whose wait counts. */
  first: boolean
}

/** Up to a row, in the order in which the jobs were submitted. 10,000 jobs: 0.3 s. */
export const readStretch = (limits: StretchLimits, upTo: Place): Query<EndedAttemptRow> => ({
  name: 'read-stretch',
  text: `
    select
      e.org_id, f.first,
      extract(epoch from case when f.first then least(r.ready_at, e.started_at) else e.started_at end)::double precision
        * 1000 as ready_ms,
      extract(epoch from e.started_at)::double precision * 1000 as start_ms,
      extract(epoch from e.at)::double precision * 1000 as end_ms
    from (
      select s.org_id, s.at, s.outcome, a.job_id, s.at - a.ran_ms * interval '1 millisecond' as started_at
      from smartqueue.gain_stretch($1::int, $2::int) s
      cross join lateral unnest(s.job_ids, s.ran_ms) as a (job_id, ran_ms)
      where (s.xid, s.id) <= ($3::xid8, $4::bigint)
    ) e
    cross join lateral (
      select created_at, run_at
      from smartqueue.jobs
      where org_id = e.org_id
        and id = e.job_id
      offset 0
    ) j
    cross join lateral smartqueue.readiness_of(e.org_id, e.job_id, j.created_at, j.run_at, e.at) r
    cross join lateral (select e.outcome <> 'cancelled' and not r.is_later_try as first) f
    order by e.job_id`,
  values: [limits.rows, limits.jobs, upTo.xid, upTo.id],
})

export type CapacityRow = {
  /** How many slots there were, from when on, oldest first. The first may be from long before. */
  slots: { at_ms: number; slots: number }[]
  /** When the jobs that run now started: a slot less from then on. */
  running_ms: number[]
}

export const readCapacity = (sinceMs: number): Query<CapacityRow> => ({
  name: 'read-capacity',
  text: `
    select
      (
        select coalesce(
          jsonb_agg(jsonb_build_object('at_ms', extract(epoch from at) * 1000, 'slots', slots) order by at), '[]'
        )
        from smartqueue.slot_changes
        where at >= coalesce(
          (select max(at) from smartqueue.slot_changes where at <= to_timestamp($1::double precision / 1000)),
          '-infinity'
        )
      ) as slots,
      (
        select coalesce(jsonb_agg(extract(epoch from started_at) * 1000), '[]')
        from smartqueue.held_jobs
      ) as running_ms`,
  values: [sinceMs],
})

export type Gain = Record<'jobs' | 'wait_ms' | 'fifo_wait_ms' | 'max_wait_ms' | 'fifo_max_wait_ms', number>

export type GainRow = Gain & { org_id: string; at_ms: number }

/**
 * Adds the gains and moves the cursor, to the present if `to` is null. No row: the term is over, or the cursor is not
 * at `from`.
 */
export const storeGains = (
  term: string,
  from: Place,
  to: Place | null,
  rows: readonly GainRow[],
): Query<{ reader: string }> => ({
  name: 'store-gains',
  text: `
    with moved as (
      update smartqueue.event_cursors
      set xid = coalesce($4::xid8, pg_snapshot_xmin(pg_current_snapshot())), id = coalesce($5::bigint, 0)
      where reader = 'gains'
        and xid = $2::xid8
        and id = $3::bigint
        and (select smartqueue.in_term($1::bigint))
      returning reader
    ),
    added as (
      insert into smartqueue.scheduling_gains as g (
        org_id, at, jobs, wait_ms, fifo_wait_ms, max_wait_ms, fifo_max_wait_ms
      )
      select
        r.org_id, to_timestamp(r.at_ms / 1000), r.jobs, r.wait_ms, r.fifo_wait_ms, r.max_wait_ms, r.fifo_max_wait_ms
      from jsonb_to_recordset($6::jsonb) as r (
        org_id uuid, at_ms double precision, jobs bigint, wait_ms double precision, fifo_wait_ms double precision,
        max_wait_ms double precision, fifo_max_wait_ms double precision
      )
      where exists (select from moved)
      order by r.org_id, r.at_ms
      on conflict (org_id, at) do update
      set
        jobs = g.jobs + excluded.jobs, wait_ms = g.wait_ms + excluded.wait_ms,
        fifo_wait_ms = g.fifo_wait_ms + excluded.fifo_wait_ms,
        max_wait_ms = greatest(g.max_wait_ms, excluded.max_wait_ms),
        fifo_max_wait_ms = greatest(g.fifo_max_wait_ms, excluded.fifo_max_wait_ms)
    )
    select reader
    from moved`,
  values: [term, from.xid, from.id, to?.xid ?? null, to?.id ?? null, JSON.stringify(rows)],
})
