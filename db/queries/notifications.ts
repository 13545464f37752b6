import type { Query } from '../query.ts'

/** To all channels of channels.ts. `LISTEN` takes no parameters. */
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
