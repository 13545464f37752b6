/** How far the leader has read the events, for callbacks and rollups. */
import type { Query } from '../query.ts'

/** A place among the events: a row of theirs, and how many of its jobs come before. */
export type EventPosition = { xid: string; id: string; position: number }

/** Moves the cursor. No row: it is not where it was, or somebody else leads. */
export const moveCallbackCursor = (
  term: string,
  from: EventPosition,
  to: EventPosition,
): Query<{ moved: true }> => ({
  name: 'move-callback-cursor',
  text: `
    update smartqueue.event_cursors
    set xid = $5::xid8, id = $6::bigint, position = $7::int
    where reader = 'callbacks'
      and xid = $2::xid8
      and id = $3::bigint
      and position = $4::int
      and (select smartqueue.in_term($1::bigint))
    returning true as moved`,
  values: [term, from.xid, from.id, from.position, to.xid, to.id, to.position],
})

export const getCallbackCursor = (): Query<EventPosition> => ({
  name: 'get-callback-cursor',
  text: `
    select xid::text, id::text, position
    from smartqueue.event_cursors
    where reader = 'callbacks'`,
  values: [],
})

/**
 * Starts again at the present if a cursor is ahead of all transactions: the database was restored from another server.
 * The restored rows are skipped for good, because this server will use their transaction ids later. Streams from before
 * cannot continue either, because their positions are of the other server.
 */
export const restartCursors = (
  term: string,
  readers: readonly ('callbacks' | 'rollups' | 'gains')[],
): Query<{ reader: string }> => ({
  name: 'restart-cursors',
  text: `
    with restarted as (
      update smartqueue.event_cursors
      set
        xid = pg_snapshot_xmin(pg_current_snapshot()),
        id = 0,
        position = 0,
        foreign_id = coalesce(
          case reader
            when 'gains' then (
              select max(id) from smartqueue.executions where xid >= pg_snapshot_xmax(pg_current_snapshot())
            )
            else (select max(id) from smartqueue.job_event_groups where xid >= pg_snapshot_xmax(pg_current_snapshot()))
          end,
          foreign_id
        )
      where reader = any ($2::text[])
        and xid > pg_snapshot_xmax(pg_current_snapshot())
        and (select smartqueue.in_term($1::bigint))
      returning reader, xid
    ),
    -- The number before: whoever begins at the present is not lost.
    floor as (
      update smartqueue.stream_floor f
      set xid = (r.xid::text::numeric - 1)::text::xid8
      from restarted r
      where r.reader = 'callbacks'
    )
    select reader
    from restarted`,
  values: [term, readers],
})
