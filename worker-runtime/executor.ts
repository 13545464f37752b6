import { type ZodError, z } from 'zod'
import type { ClaimedJob } from '../db/queries/exchange.ts'
import { type GuardedFetch, type JobContext, type JobHandler, type JobLog, snoozedSeconds } from './handler-api.ts'
import { ExecutionAborted, type Outcome, outcomeOfAbort, outcomeOfThrow } from './outcome.ts'
import { toStorableJson } from './storable-json.ts'

/** A handler that ignores its AbortSignal is left behind after this long, so that it cannot hold a slot for ever. */
const ABORT_GRACE_MS = 5_000
/** Room for the 1 MiB body of an http job in base64, and what goes with it. */
const MAX_RESULT_BYTES = 2 * 1024 * 1024
const MAX_CHECKPOINT_BYTES = 256 * 1024
const MAX_SNOOZE_SECONDS = 30 * 86_400

/** One job on its way through a handler. */
export type Execution = {
  readonly job: ClaimedJob
  readonly outcome: Promise<Outcome>
  abort(reason: ExecutionAborted): void
}

/** What an execution uses of the worker. */
export type ExecutionTools = {
  logFor(job: ClaimedJob): JobLog
  reportProgress(job: ClaimedJob, fraction: number, note?: string): void
  saveCheckpoint(job: ClaimedJob, state: unknown): Promise<void>
  fetch: GuardedFetch
}

/** decode → run → classify. The outcome is data; nothing is thrown. */
export const startExecution = (job: ClaimedJob, handler: JobHandler, tools: ExecutionTools): Execution => {
  const { promise: outcome, resolve: settle } = Promise.withResolvers<Outcome>()
  let aborted: ExecutionAborted | undefined
  // Made only for handlers that ask for it: most jobs are too short to.
  let controller: AbortController | undefined

  const abort = (reason: ExecutionAborted): void => {
    if (aborted) return
    aborted = reason
    controller?.abort(reason)
    setTimeout(() => settle(outcomeOfAbort(reason)), ABORT_GRACE_MS).unref()
  }

  const signal = (): AbortSignal => {
    controller ??= new AbortController()
    if (aborted) controller.abort(aborted)
    return controller.signal
  }

  const timer = startTimeout(job, abort)
  run(job, handler, createContext(job, tools, signal), () => aborted).then((result) => {
    clearTimeout(timer)
    settle(result)
  })
  return { job, outcome, abort }
}

const run = async (
  job: ClaimedJob,
  handler: JobHandler,
  context: JobContext,
  aborted: () => ExecutionAborted | undefined,
): Promise<Outcome> => {
  // From here on everything is the handler's code, its schema included: whatever it throws is an outcome.
  try {
    const payload = await parsePayload(handler.schema, job.payload)
    if (!payload.success) return refusePayload(payload.error)
    const before = aborted()
    if (before) return outcomeOfAbort(before)
    const result = await handler.run(payload.data, context)
    const after = aborted()
    // Finished in spite of a shutdown: take it. After a timeout or without the lease it is too late.
    return after && after.why !== 'shutdown' ? outcomeOfAbort(after) : judgeResult(result)
  } catch (thrown) {
    return outcomeOfThrow(thrown, aborted())
  }
}

/** Without a detour through promises, unless the schema asks for one. */
const parsePayload = (schema: z.ZodType, payload: unknown) => {
  try {
    return schema.safeParse(payload)
  } catch (error) {
    if (error instanceof z.core.$ZodAsyncError) return schema.safeParseAsync(payload)
    throw error
  }
}

const createContext = (job: ClaimedJob, tools: ExecutionTools, signal: () => AbortSignal): JobContext => {
  let log: JobLog | undefined
  return {
    jobId: job.job_id,
    attempt: job.attempt,
    fencingToken: job.token,
    lastCheckpoint: job.checkpoint ?? null,
    get signal() {
      return signal()
    },
    get log() {
      log ??= tools.logFor(job)
      return log
    },
    progress: (fraction, note) => tools.reportProgress(job, fraction, note),
    checkpoint: async (state) => {
      const bytes = Buffer.byteLength(JSON.stringify(state ?? null))
      if (bytes > MAX_CHECKPOINT_BYTES) {
        throw new Error(`A checkpoint of ${bytes} bytes: at most ${MAX_CHECKPOINT_BYTES} are kept.`)
      }
      await tools.saveCheckpoint(job, state ?? null)
    },
    fetch: tools.fetch,
  }
}

const refusePayload = (error: ZodError): Outcome => {
  const [issue] = error.issues
  const message = `The payload does not fit: ${issue?.path.join('.')} ${issue?.message}`
  return { kind: 'failed', error: { code: 'invalid_payload', message }, permanent: true }
}

const startTimeout = (job: ClaimedJob, abort: Execution['abort']): NodeJS.Timeout | undefined => {
  const seconds = job.timeout_seconds
  if (seconds === null) return undefined
  const reason = new ExecutionAborted('timeout', `The attempt ran longer than ${seconds} s.`)
  return setTimeout(abort, seconds * 1000, reason)
}

const judgeResult = (result: unknown): Outcome => {
  if (result === undefined || result === null) return { kind: 'done', resultJson: null }
  const seconds = snoozedSeconds(result)
  if (seconds !== undefined) {
    return { kind: 'snoozed', ms: Math.min(Math.max(seconds || 0, 0), MAX_SNOOZE_SECONDS) * 1000 }
  }
  try {
    const json = toStorableJson(result)
    if (Buffer.byteLength(json) <= MAX_RESULT_BYTES) return { kind: 'done', resultJson: json }
    return refuseResult('result_too_large', `The result is larger than ${MAX_RESULT_BYTES / 1024} KiB.`)
  } catch (error) {
    return refuseResult('unstorable_result', `The handler's result is not JSON: ${(error as Error).message}`)
  }
}

const refuseResult = (code: string, message: string): Outcome => ({
  kind: 'failed',
  error: { code, message },
  permanent: true,
})
