import type { Query } from '../query.ts'

/** Any constant will do, as long as every worker uses the same. */
const LEADER_LOCK = 7_209_115_302

/** On a connection of its own: the lock lives as long as the session. */
export const tryToLead = (): Query<{ locked: boolean }> => ({
  name: 'try-to-lead',
  text: `select pg_try_advisory_lock($1::bigint) as locked`,
  values: [LEADER_LOCK],
})

/** The holder of the lock begins a new term. The last 19 before it are kept. */
export const beginTerm = (workerId: string): Query<{ term: string }> => ({
  name: 'begin-term',
  text: `
    insert into smartqueue.scheduler_leader as l (worker_id, term, backend_pid)
    values ($1::text, 1, pg_backend_pid())
    on conflict (only_row) do update
    set
      worker_id = excluded.worker_id, term = l.term + 1, backend_pid = excluded.backend_pid,
      incarnation = excluded.incarnation, elected_at = now(), last_seen = now(),
      earlier_terms = (
        jsonb_build_object('term', l.term, 'worker_id', l.worker_id, 'elected_at', l.elected_at) || l.earlier_terms
      ) - 19
    returning l.term`,
  values: [workerId],
})

/**
 * Keeps the leader alive: standbys see when its session last spoke. The row, for people, is written only every two
 * seconds, because each write waits for the disk. No row: someone else leads.
 */
export const confirmTerm = (term: string): Query<{ term: string }> => ({
  name: 'confirm-term',
  text: `
    with seen as (
      update smartqueue.scheduler_leader
      set last_seen = now()
      where term = $1::bigint
        and backend_pid = pg_backend_pid()
        and last_seen < now() - interval '2 seconds'
    )
    select term
    from smartqueue.scheduler_leader
    where term = $1::bigint
      and backend_pid = pg_backend_pid()
      and incarnation = smartqueue.database_incarnation()`,
  values: [term],
})

/**
 * Ends the session that holds the lock if it has been silent for too long: after its host is gone, the server would
 * keep the lock for minutes. Without a worker: it had not begun its term.
 */
export const endSilentLeader = (silentMs: number): Query<{ worker_id: string | null }> => ({
  name: 'end-silent-leader',
  text: `
    select l.worker_id, pg_terminate_backend(k.pid) as ended
    from pg_locks k
    join pg_stat_activity a on a.pid = k.pid
    left join smartqueue.scheduler_leader l on l.backend_pid = k.pid
    where k.locktype = 'advisory'
      and k.granted
      and k.pid <> pg_backend_pid()
      and k.database = (select oid from pg_database where datname = current_database())
      and ((k.classid::bigint << 32) | k.objid::bigint) = $1::bigint
      and a.state_change < clock_timestamp() - $2::int * interval '1 millisecond'`,
  values: [LEADER_LOCK, silentMs],
})
