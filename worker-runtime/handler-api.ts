import type { z } from 'zod'
import type { LogLevel } from '../db/rules/log-levels.ts'

/** What a handler may use. Everything it needs from the worker reaches it through `ctx`. */
export type JobContext = {
  readonly jobId: string
  readonly orgId: string
  /** 1 on the first try. */
  readonly attempt: number
  /** Grows with each lease of a job: a store that keeps the highest one seen can refuse a holder of the past. */
  readonly fencingToken: string
  /** Aborts when the job times out, is cancelled, or loses its lease, or when the worker shuts down. */
  readonly signal: AbortSignal
  /** Writes to the job's own log (`GET /jobs/{id}/logs`). */
  readonly log: JobLog
  /** How far the job is, from 0 to 1, and what it is doing. Shown with the job. */
  progress(fraction: number, note?: string): void
  /** Keeps `state` for a later attempt. Resolves once it is stored; a JSON value of at most 256 KiB. */
  checkpoint(state: unknown): Promise<void>
  /** What an earlier attempt kept; null if none did. */
  readonly lastCheckpoint: unknown
  /** `fetch` that refuses private, loopback, link-local and metadata addresses on every redirect hop. */
  readonly fetch: GuardedFetch
  /** Connects to a database that the operator has named (`SMARTQUEUE_CONNECTIONS`). Closed when the attempt ends. */
  postgres(name: string): Promise<PostgresConnection>
}

/** How an operator may name a database. */
export const CONNECTION_NAME = /^[a-z][a-z0-9_-]{0,62}$/

/** One session. Values never stand in the text. A statement that runs when the attempt is aborted is ended with it. */
export type PostgresConnection = {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ rows: Row[]; rowCount: number }>
}

export type JobLog = Readonly<Record<LogLevel, (message: string) => void>>

/** The part of WHATWG fetch that handlers get; redirects are followed unless `redirect` is `manual`. */
export type GuardedFetch = (url: string | URL, init?: GuardedFetchInit) => Promise<Response>
export type GuardedFetchInit = {
  method?: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  redirect?: 'follow' | 'manual'
  signal?: AbortSignal
}

export type JobHandler<Schema extends z.ZodType = z.ZodType> = {
  readonly type: string
  /** Parses the payload: at submission (as JSON Schema) and again, in full, before `run`. */
  readonly schema: Schema
  /** What it resolves to is stored, as JSON, as the job's result; `snooze(…)` instead. A throw is a failed attempt. */
  run(payload: z.output<Schema>, ctx: JobContext): Promise<unknown>
}

export const defineJob = <Schema extends z.ZodType>(handler: JobHandler<Schema>): JobHandler<Schema> =>
  handler

/**
 * A handler that computes: each of its attempts runs in a thread of its own, so that it delays no heartbeat and no other
 * job, and one that does not heed its signal is ended with its thread.
 */
export type ThreadedJobHandler<Schema extends z.ZodType = z.ZodType> = {
  readonly type: string
  readonly schema: Schema
  /** A module that exports `run(payload, ctx)`, as in a handler: `new URL('./my-job-run.ts', import.meta.url)`. */
  readonly module: URL
}

export const defineThreadedJob = <Schema extends z.ZodType>(
  handler: ThreadedJobHandler<Schema>,
): ThreadedJobHandler<Schema> => handler

export type AnyJobHandler = JobHandler | ThreadedJobHandler

/** An attempt that failed, with a code that clients can branch on. Retried while attempts are left. */
export class JobError extends Error {
  readonly code: string
  readonly permanent: boolean
  /** The next attempt begins no sooner. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: string,
    message: string,
    options: { permanent?: boolean; retryAfterSeconds?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'JobError'
    this.code = code
    this.permanent = options.permanent ?? false
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

const SNOOZE = Symbol('snooze')

export type Snooze = { readonly [SNOOZE]: number }

/** Returned by a handler: not yet, try again later. The attempt does not count. */
export const snooze = (seconds: number): Snooze => ({ [SNOOZE]: seconds })

export const snoozedSeconds = (result: unknown): number | undefined =>
  typeof result === 'object' && result !== null && SNOOZE in result ? Number(result[SNOOZE]) : undefined
