import type { Query } from '../query.ts'

/** A place among the events: a row of theirs, and how many of its jobs come before. */
export type EventPosition = { xid: string; id: string; position: number }

export type CallbackCursor = EventPosition & {
  foreign_id: string
  /** It is beyond all transactions that there have been: the database is the dump of another server's. */
  is_foreign: boolean
}

export const getCallbackCursor = (): Query<CallbackCursor> => ({
  name: 'get-callback-cursor',
  text: `
    select
      xid::text, id::text, position, foreign_id::text, xid > pg_snapshot_xmax(pg_current_snapshot()) as is_foreign
    from smartqueue.callback_cursor`,
  values: [],
})

/** Moves the cursor. No row: it is not where it was, or somebody else leads. */
export const moveCallbackCursor = (
  term: string,
  from: EventPosition,
  to: EventPosition,
): Query<{ moved: true }> => ({
  name: 'move-callback-cursor',
  text: `
    update smartqueue.callback_cursor
    set xid = $5::xid8, id = $6::bigint, position = $7::int
    where xid = $2::xid8
      and id = $3::bigint
      and position = $4::int
      and (select smartqueue.in_term($1::bigint))
    returning true as moved`,
  values: [term, from.xid, from.id, from.position, to.xid, to.id, to.position],
})

/**
 * Starts again at the present, after a restore from another server. The restored rows are skipped for good, and
 * streams from before cannot continue: their positions are of the other server.
 */
export const restartCallbackCursor = (term: string): Query<{ restarted: true }> => ({
  name: 'restart-callback-cursor',
  text: `
    with restarted as (
      update smartqueue.callback_cursor
      set
        xid = pg_snapshot_xmin(pg_current_snapshot()),
        id = 0,
        position = 0,
        foreign_id = coalesce(
          (
            select id
            from smartqueue.job_event_groups
            where xid >= pg_snapshot_xmax(pg_current_snapshot())
            order by id desc
            limit 1
          ),
          foreign_id
        )
      where xid > pg_snapshot_xmax(pg_current_snapshot())
        and (select smartqueue.in_term($1::bigint))
      returning xid
    ),
    -- The number before: whoever begins at the present is not lost.
    floor as (
      update smartqueue.stream_floor f
      set xid = (r.xid::text::numeric - 1)::text::xid8
      from restarted r
    )
    select true as restarted
    from restarted`,
  values: [term],
})
