import { JOBS_CANCELLED, JOBS_READY, QUEUE_PAUSED, WORKER_IDLE, WORKER_ISOLATES } from '../channels.ts'
import type { Query } from '../query.ts'

/** No parameters: `LISTEN` takes none. */
export const listen = (): Query<never> => ({
  name: 'listen',
  text: [JOBS_READY, JOBS_CANCELLED, QUEUE_PAUSED, WORKER_IDLE, WORKER_ISOLATES]
    .map((channel) => `listen ${channel}`)
    .join('; '),
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
