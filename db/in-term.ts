/**
 * A condition of the leader's statements. `$1` is its term: what a former leader sends changes nothing. A term also ends when
 * the database restarts or recovers, because positions that the leader holds in memory may lie beyond reused transaction ids.
 */
export const IN_TERM = `exists (
        select
        from scheduler_leader
        where term = $1::bigint
          and incarnation = database_incarnation()
      )`
