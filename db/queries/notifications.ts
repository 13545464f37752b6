import type { Query } from '../query.ts'

/**
 * NOTIFY channels. Most notifications are sent after the commit, several in one statement: inside the transaction, NOTIFY
 * holds a server-wide lock while the commit is flushed, and commits can no longer share a flush. Only one submission in
 * 5 ms and a pause send their own. Workers also poll slowly, in case a notification is lost.
 */

/** The payload is the type of jobs that became ready. */
export const JOBS_READY = 'jobs_ready'

/** The payload is the id of a worker, of whose jobs some were cancelled. */
export const JOBS_CANCELLED = 'jobs_cancelled'

/** The payload is an organisation, or one and a type: `<org_id>/<type>`. */
export const QUEUE_PAUSED = 'queue_paused'

/** A worker has nothing to do while others hold jobs that they have not started. The payload is its id. */
export const WORKER_IDLE = 'worker_idle'

/** The payload is the id of a worker that should finish its jobs and then run a suspect alone. */
export const WORKER_ISOLATES = 'worker_isolates'

/** To all channels above. `LISTEN` takes no parameters. */
export const listen = (): Query<never> => ({
  name: 'listen',
  text: 'listen jobs_ready; listen jobs_cancelled; listen queue_paused; listen worker_idle; listen worker_isolates',
  values: [],
})

/** Sends one notification for each payload. Its commit leaves a trace in the log, which nobody needs on the disk. */
export const notify = (channel: string, payloads: readonly string[]): Query<never> => ({
  name: 'notify',
  text: `
    select pg_notify($1::text, payload), set_config('synchronous_commit', 'off', true)
    from unnest($2::text[]) as payload`,
  values: [channel, payloads],
})

export const ping = (): Query<{ answer: number }> => ({
  name: 'ping',
  text: `select 1 as answer`,
  values: [],
})

/**
 * Two statements of one transaction that make Postgres write to its disk without privileges on any table and
 * without leaving data behind: a result that does not fit into `work_mem` is spilled to a temporary file. If
 * the disk is full, that fails with 53100.
 */
export const probeDisk = (): [Query<unknown>, Query<unknown>] => [
  {
    name: 'limit-memory',
    text: `
    select set_config('work_mem', '64kB', true)`,
    values: [],
  },
  {
    name: 'spill-to-disk',
    text: `
    select count(*)::integer as spilled
    from generate_series(1, 10000)`,
    values: [],
  },
]
