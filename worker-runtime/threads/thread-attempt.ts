import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import { describeError } from '../describe-error.ts'
import type { JobContext, JobError } from '../handler-api.ts'
import { alreadyJudged } from '../judge-result.ts'
import { type ExecutionAborted, ThrownInThread } from '../outcome.ts'
import { spanOf } from '../tracing/job-tracing.ts'
import type { JobThread } from './job-thread.ts'
import type { AttemptEnded, FromThread, ToThread } from './messages.ts'

/** A thread that is told to stop gets so long to end its attempt. */
const ABORT_GRACE_MS = 500
/** And so long to close what the attempt has opened. */
export const CLOSE_MS = 2_000

/** One attempt in a thread, seen from the worker's side. */
export type ThreadAttempt = {
  /** As of a handler's `run`. */
  readonly result: Promise<unknown>
  /** Whether the thread can take another attempt, once it is known. */
  readonly reusable: Promise<boolean>
}

/**
 * Hands the attempt over, passes on what it says, and tells it to stop. The port is the attempt's own: what a handler
 * leaves running when it returns cannot write into the log of the next.
 */
export const runInThread = (
  thread: JobThread,
  module: URL,
  payload: unknown,
  ctx: JobContext,
): ThreadAttempt => {
  const { port1: port, port2 } = new MessageChannel()
  const abortFlag = new Int32Array(new SharedArrayBuffer(4))
  const result = Promise.withResolvers<unknown>()
  const reusable = Promise.withResolvers<boolean>()
  const span = spanOf(ctx)
  let timer: NodeJS.Timeout | undefined
  const tell = (message: ToThread): void => port.postMessage(message)

  const hear = (said: FromThread): void => {
    switch (said.kind) {
      case 'log':
        ctx.log[said.level](said.message)
        break
      case 'progress':
        ctx.progress(said.fraction, said.note)
        break
      case 'checkpoint':
        store(said.id, said.json)
        break
      case 'fetched':
        span?.fetched(said.fetched)
        break
      case 'returned':
      case 'threw':
        conclude(said)
        break
      case 'closed':
        finish(false)
    }
  }

  const conclude = ({ kind, outcome, closed }: AttemptEnded): void => {
    // Before whoever waits for the result asks for the next thread.
    if (closed) finish(!ctx.signal.aborted)
    else limit(CLOSE_MS)
    if (kind === 'returned') result.resolve(alreadyJudged(outcome))
    else result.reject(new ThrownInThread(outcome))
  }

  const store = (id: number, json: string): Promise<void> =>
    ctx.checkpoint(JSON.parse(json)).then(
      () => tell({ kind: 'stored', id, error: undefined }),
      (error) => tell({ kind: 'stored', id, error: describeError(error) }),
    )

  const abort = (): void => {
    const { why, message } = ctx.signal.reason as ExecutionAborted
    Atomics.store(abortFlag, 0, 1)
    tell({ kind: 'abort', why, message })
    limit(ABORT_GRACE_MS)
  }

  const limit = (ms: number): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      result.reject(ctx.signal.reason)
      finish(false)
    }, ms)
  }

  const finish = (isReusable: boolean): void => {
    clearTimeout(timer)
    ctx.signal.removeEventListener('abort', abort)
    port.close()
    reusable.resolve(isReusable)
  }

  const died = (error: JobError): void => {
    // What it has said before it died may still be on its way.
    for (let last = receiveMessageOnPort(port); last; last = receiveMessageOnPort(port)) hear(last.message)
    result.reject(error)
    finish(false)
  }

  port.on('message', hear)
  ctx.signal.addEventListener('abort', abort, { once: true })
  const { jobId, orgId, attempt, fencingToken, lastCheckpoint } = ctx
  const traceparent = span?.traceparent
  const task = { jobId, orgId, attempt, fencingToken, lastCheckpoint, payload, traceparent }
  try {
    thread.run({ ...task, module: module.href, abortFlag, port: port2 }, died)
  } catch (error) {
    // The payload, as the schema has made it, cannot be cloned.
    result.reject(error)
    finish(true)
  }
  return { result: result.promise, reusable: reusable.promise }
}
