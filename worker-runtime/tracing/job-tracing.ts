/** What the worker knows of tracing. OpenTelemetry itself is loaded only if spans are exported: see `start-tracing.ts`. */
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import type { GuardedFetch, JobContext } from '../handler-api.ts'
import type { Outcome } from '../outcome.ts'

export type JobTracing = {
  /** Jobs have been claimed by one statement. To be told before any of them begins. */
  claimed(jobs: readonly ClaimedJob[], claim: { workerId: string; sentAtMs: number }): void
  /** An attempt begins. */
  begin(job: ClaimedJob): JobSpan
  /** Sends what has not been sent, for a few seconds at most. */
  stop(): Promise<void>
}

/** One attempt, as a span. */
export type JobSpan = {
  /** Of the span: what the handler asks of others goes on from here. */
  readonly traceparent: string
  /** Spans that the handler begins are children of this one. */
  run<T>(work: () => T): T
  /** In a span of its own, which the receiver is told of. */
  readonly fetch: (fetch: GuardedFetch) => GuardedFetch
  /** The handler has fetched something, here or in its thread. */
  fetched(fetched: FetchSpan): void
  end(outcome: Outcome): void
}

/** A request that a handler has made. Plain data: it may come from a thread. Not its path, which may be secret. */
export type FetchSpan = {
  readonly spanId: string
  readonly method: string
  readonly scheme: string
  readonly host: string
  readonly port: number
  readonly startMs: number
  readonly endMs: number
  readonly status: number | undefined
  /** A code, if there was no answer. */
  readonly error: string | undefined
}

export const SPAN = Symbol('span')

/** The span of the attempt that a context was made for. Handlers have no business with it. */
export const spanOf = (ctx: JobContext): JobSpan | undefined => (ctx as { [SPAN]?: JobSpan })[SPAN]
