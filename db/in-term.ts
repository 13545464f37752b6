/** A condition of the leader's statements. `$1` is its term: one that a former leader sends changes nothing. */
export const IN_TERM = `exists (select from scheduler_leader where term = $1::bigint)`
