import { toCheckpointJson } from '../checkpoint-json.ts'
import type { JobSessions } from '../connections/job-sessions.ts'
import type { GuardedFetch, JobContext } from '../handler-api.ts'
import { createAttemptPort } from './attempt-port.ts'
import type { FromThread, ThreadSettings, ThreadTask } from './messages.ts'
import { quietLog, quietProgress } from './quiet-reports.ts'

/** The `ctx` of a handler in a thread. */
export const createThreadContext = (
  task: ThreadTask,
  settings: ThreadSettings,
): { ctx: JobContext /** Sends what was held back. */; flush(): void; close(): Promise<void> } => {
  const { jobId, orgId, attempt, fencingToken, lastCheckpoint } = task
  const port = createAttemptPort(task)
  const progress = quietProgress(port.say)
  let sessions: JobSessions | undefined

  const ctx: JobContext = {
    jobId,
    orgId,
    attempt,
    fencingToken,
    lastCheckpoint,
    signal: port.signal,
    log: quietLog(port.say),
    progress: progress.report,
    checkpoint: async (state) => port.store(toCheckpointJson(state)),
    fetch: fetchIn(settings, task, port.say),
    postgres: async (name) => {
      const { createJobSessions } = await import('../connections/job-sessions.ts')
      sessions ??= createJobSessions({ connections: settings.connections, jobId, orgId, signal: port.signal })
      return sessions.open(name)
    },
  }
  return {
    ctx,
    flush: progress.flush,
    close: async () => sessions?.close(),
  }
}

let egress: { fetch: GuardedFetch } | undefined

/** Loaded by those who ask for it: most handlers that compute do not, and a thread should start fast and small. */
const fetchIn = (
  { allow }: ThreadSettings,
  { traceparent }: ThreadTask,
  say: (message: FromThread) => void,
): GuardedFetch => {
  const fetch: GuardedFetch = async (url, init) => {
    const { createGuardedFetch } = await import('../egress/guarded-fetch.ts')
    egress ??= createGuardedFetch({ allow })
    return egress.fetch(url, init)
  }
  if (traceparent === undefined) return fetch
  return async (url, init) => {
    const { tracedFetch } = await import('../tracing/traced-fetch.ts')
    return tracedFetch(fetch, traceparent, (fetched) => say({ kind: 'fetched', fetched }))(url, init)
  }
}
