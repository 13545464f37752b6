/**
 * A condition in the leader's statements. `$1` is its term: statements of a former leader change nothing. A
 * term also ends when the database restarts or recovers, because positions that the leader holds in memory
 * may be ahead of reused transaction ids.
 */
export const IN_TERM = `exists (
        select
        from smartqueue.scheduler_leader
        where term = $1::bigint
          and incarnation = smartqueue.database_incarnation()
      )`
