import type { ZodError } from 'zod'
import type { ClaimedJob } from '../db/queries/leases.ts'
import type { GuardedFetch, JobHandler, JobLog } from './handler-api.ts'
import { ExecutionAborted, type Outcome, outcomeOfAbort, outcomeOfThrow } from './outcome.ts'

/** A handler that ignores its AbortSignal is left behind after this long, so that it cannot hold a slot for ever. */
const ABORT_GRACE_MS = 5_000
/** Room for the 1 MiB body of an http job in base64, and what goes with it. */
const MAX_RESULT_BYTES = 2 * 1024 * 1024

/** One job on its way through a handler. */
export type Execution = {
  readonly job: ClaimedJob
  readonly outcome: Promise<Outcome>
  abort(reason: ExecutionAborted): void
}

/** decode → run → classify. The outcome is data; nothing is thrown. */
export const startExecution = (
  job: ClaimedJob,
  handler: JobHandler,
  tools: { log: JobLog; fetch: GuardedFetch },
): Execution => {
  const controller = new AbortController()
  const abort = (reason: ExecutionAborted): void => {
    if (!controller.signal.aborted) controller.abort(reason)
  }
  const outcome = run(job, handler, { ...tools, signal: controller.signal, abort })
  return { job, outcome, abort }
}

type RunTools = {
  log: JobLog
  fetch: GuardedFetch
  signal: AbortSignal
  abort: (reason: ExecutionAborted) => void
}

const run = async (job: ClaimedJob, handler: JobHandler, tools: RunTools): Promise<Outcome> => {
  const timer = startTimeout(job, tools.abort)
  const { log, fetch, signal } = tools
  // From here on everything is the handler's code, its schema included: whatever it throws is an outcome.
  try {
    const payload = await handler.schema.safeParseAsync(job.payload)
    if (!payload.success) return refusePayload(payload.error)
    signal.throwIfAborted()
    const running = handler.run(payload.data, { jobId: job.job_id, attempt: job.attempt, signal, log, fetch })
    const result = await Promise.race([running, abandoned(signal)])
    const aborted = abortReason(signal)
    // Finished in spite of a shutdown: take it. After a timeout or without the lease it is too late.
    return aborted && aborted.why !== 'shutdown' ? outcomeOfAbort(aborted) : checkResult(result)
  } catch (thrown) {
    return outcomeOfThrow(thrown, abortReason(signal))
  } finally {
    clearTimeout(timer)
  }
}

const refusePayload = (error: ZodError): Outcome => {
  const [issue] = error.issues
  const message = `The payload does not fit: ${issue?.path.join('.')} ${issue?.message}`
  return { kind: 'failed', error: { code: 'invalid_payload', message }, permanent: true }
}

const startTimeout = (job: ClaimedJob, abort: RunTools['abort']): NodeJS.Timeout | undefined => {
  const seconds = job.timeout_seconds
  if (seconds === null) return undefined
  const reason = new ExecutionAborted('timeout', `The attempt ran longer than ${seconds} s.`)
  return setTimeout(abort, seconds * 1000, reason)
}

/** Rejects some time after the abort, for handlers that do not listen to it. */
const abandoned = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => setTimeout(reject, ABORT_GRACE_MS, signal.reason).unref(), {
      once: true,
    })
  })

const abortReason = (signal: AbortSignal): ExecutionAborted | undefined =>
  signal.aborted ? (signal.reason as ExecutionAborted) : undefined

const checkResult = (result: unknown): Outcome => {
  const refuse = (code: string, message: string): Outcome => ({
    kind: 'failed',
    error: { code, message },
    permanent: true,
  })
  try {
    const json = JSON.stringify(result ?? null)
    if (json === undefined)
      return refuse('unstorable_result', 'The handler returned something that is not JSON.')
    if (Buffer.byteLength(json) > MAX_RESULT_BYTES) {
      return refuse('result_too_large', `The result is larger than ${MAX_RESULT_BYTES / 1024} KiB.`)
    }
    return { kind: 'done', result: result ?? null }
  } catch (error) {
    return refuse('unstorable_result', `The handler's result is not JSON: ${(error as Error).message}`)
  }
}
