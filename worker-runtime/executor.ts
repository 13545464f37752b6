import { type ZodError, z } from 'zod'
import type { ClaimedJob } from '../db/queue/exchange.ts'
import { toCheckpointJson } from './checkpoint-json.ts'
import type { JobSessions } from './connections/job-sessions.ts'
import type { GuardedFetch, JobContext, JobHandler, JobLog } from './handler-api.ts'
import { judgeResult } from './judge-result.ts'
import { ExecutionAborted, type Outcome, outcomeOfAbort, outcomeOfThrow } from './outcome.ts'
import { type JobSpan, type JobTracing, SPAN } from './tracing/job-tracing.ts'

/** A handler that ignores its AbortSignal is left behind after this long, so that it cannot hold a slot for ever. */
const ABORT_GRACE_MS = 5_000
/** A limit that nobody asked for is never shorter than this, and no longer than a timer can be set for. */
const LEAST_AUTO_TIMEOUT_MS = 60_000
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** One job on its way through a handler. */
export type Execution = {
  abort(reason: ExecutionAborted): void
}

/** What an execution uses of the worker. */
export type ExecutionTools = {
  logFor(job: ClaimedJob): JobLog
  reportProgress(job: ClaimedJob, fraction: number, note?: string): void
  saveCheckpoint(job: ClaimedJob, state: unknown): Promise<void>
  fetch: GuardedFetch
  sessionsFor(job: ClaimedJob, signal: AbortSignal): JobSessions
  /** An attempt of a job without a timeout may take so many times its p99. 0: as long as it likes. */
  autoTimeout: number
  /** Undefined: nothing is traced. */
  tracing?: JobTracing | undefined
  /** Called when the worker itself failed to handle an outcome. */
  onError(error: Error): void
}

/** decode → run → classify. The outcome is data, and it comes once; nothing is thrown. */
export const startExecution = (
  job: ClaimedJob,
  handler: JobHandler,
  tools: ExecutionTools,
  onOutcome: (outcome: Outcome) => void,
): Execution => {
  const state: ExecutionState = {
    job,
    tools,
    aborted: undefined,
    controller: undefined,
    log: undefined,
    sessions: undefined,
    span: tools.tracing?.begin(job),
  }
  let settled = false
  const settle = (outcome: Outcome): void => {
    if (settled) return
    settled = true
    clearTimeout(timer)
    state.span?.end(outcome)
    onOutcome(outcome)
  }
  const abort = (reason: ExecutionAborted): void => {
    if (state.aborted || settled) return
    state.aborted = reason
    state.controller?.abort(reason)
    setTimeout(settle, ABORT_GRACE_MS, outcomeOfAbort(reason)).unref()
  }
  const timer = startTimeout(job, tools.autoTimeout, abort)
  const running = state.span ? state.span.run(() => run(state, handler)) : run(state, handler)
  // `run` catches what handlers throw. If it fails itself, that becomes the attempt's outcome, not an
  // unhandled rejection.
  running
    .catch((thrown) => outcomeOfThrow(thrown, state.aborted))
    .then(settle)
    .catch(tools.onError)
  return { abort }
}

type ExecutionState = {
  readonly job: ClaimedJob
  readonly tools: ExecutionTools
  aborted: ExecutionAborted | undefined
  // Made only for handlers that ask for them: most jobs are too short to.
  controller: AbortController | undefined
  log: JobLog | undefined
  sessions: JobSessions | undefined
  readonly span: JobSpan | undefined
}

const run = async (state: ExecutionState, handler: JobHandler): Promise<Outcome> => {
  // From here on everything is the handler's code, its schema included: whatever it throws is an outcome.
  try {
    const parsed = parsePayload(handler.schema, state.job.payload)
    const payload = parsed instanceof Promise ? await parsed : parsed
    if (!payload.success) return refusePayload(payload.error)
    if (state.aborted) return outcomeOfAbort(state.aborted)
    const result = await handler.run(payload.data, createContext(state))
    // Finished in spite of a shutdown: take it. After a timeout or without the lease it is too late.
    const { aborted } = state as ExecutionState
    return aborted && aborted.why !== 'shutdown' ? outcomeOfAbort(aborted) : judgeResult(result)
  } catch (thrown) {
    return outcomeOfThrow(thrown, state.aborted)
  } finally {
    state.sessions?.close()
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

const STATE = Symbol('state')
type OwnContext = JobContext & { readonly [STATE]: ExecutionState }

/** The methods of all contexts: one prototype, because a context is made for every job. */
const CONTEXT = {
  get signal(): AbortSignal {
    const state = (this as unknown as OwnContext)[STATE]
    state.controller ??= new AbortController()
    if (state.aborted) state.controller.abort(state.aborted)
    return state.controller.signal
  },
  get log(): JobLog {
    const state = (this as unknown as OwnContext)[STATE]
    state.log ??= state.tools.logFor(state.job)
    return state.log
  },
  get fetch(): GuardedFetch {
    const { tools, span } = (this as unknown as OwnContext)[STATE]
    return span ? span.fetch(tools.fetch) : tools.fetch
  },
  get progress(): JobContext['progress'] {
    const { tools, job } = (this as unknown as OwnContext)[STATE]
    return (fraction, note) => tools.reportProgress(job, fraction, note)
  },
  get checkpoint(): JobContext['checkpoint'] {
    const { tools, job } = (this as unknown as OwnContext)[STATE]
    // A plain copy: it is written together with checkpoints of other jobs and must not make them fail.
    return async (state) => tools.saveCheckpoint(job, JSON.parse(toCheckpointJson(state)))
  },
  get postgres(): JobContext['postgres'] {
    const context = this as unknown as OwnContext
    const state = context[STATE]
    return (name) => {
      state.sessions ??= state.tools.sessionsFor(state.job, context.signal)
      return state.sessions.open(name)
    }
  },
}

const createContext = (state: ExecutionState): JobContext => {
  const { job } = state
  return {
    // @ts-expect-error The prototype has the rest.
    __proto__: CONTEXT,
    [STATE]: state,
    [SPAN]: state.span,
    jobId: job.job_id,
    orgId: job.org_id,
    attempt: job.attempt,
    fencingToken: job.token,
    lastCheckpoint: job.checkpoint,
  }
}

const refusePayload = (error: ZodError): Outcome => {
  const [issue] = error.issues
  const message = `The payload does not fit: ${issue?.path.join('.')} ${issue?.message}`
  return { kind: 'failed', error: { code: 'invalid_payload', message }, permanent: true }
}

const startTimeout = (
  job: ClaimedJob,
  autoTimeout: number,
  abort: Execution['abort'],
): NodeJS.Timeout | undefined => {
  const limit = limitOf(job, autoTimeout)
  if (!limit) return undefined
  return setTimeout(abort, limit.ms, new ExecutionAborted('timeout', limit.message))
}

/** The timeout that was asked for, else one far beyond what the series takes. */
const limitOf = (job: ClaimedJob, autoTimeout: number): { ms: number; message: string } | undefined => {
  const { timeout_seconds: seconds, predicted_p99_ms: p99Ms } = job
  if (seconds !== null) return { ms: seconds * 1000, message: `The attempt ran longer than ${seconds} s.` }
  if (p99Ms === null || autoTimeout === 0) return undefined
  const ms = Math.max(LEAST_AUTO_TIMEOUT_MS, autoTimeout * p99Ms)
  if (ms > LONGEST_TIMER_MS) return undefined
  const derivation = `derived from the p99 of such jobs, ${inSeconds(p99Ms)} s (${autoTimeout} times that, and at least 60 s)`
  return {
    ms,
    message: `The attempt ran longer than ${inSeconds(ms)} s, a limit ${derivation}. Set timeout_seconds to choose another.`,
  }
}

const inSeconds = (ms: number): string => String(Number((ms / 1000).toPrecision(3)))
