import type { z } from 'zod'
import type { LogLevel } from '../db/rules/log-levels.ts'

/** What a handler may use. Everything it needs from the worker reaches it through `ctx`. */
export type JobContext = {
  readonly jobId: string
  /** 1 on the first try. */
  readonly attempt: number
  /** Aborts when the job times out, its lease is lost, or the worker shuts down. */
  readonly signal: AbortSignal
  /** Writes to the job's own log (`GET /jobs/{id}/logs`). */
  readonly log: JobLog
  /** `fetch` that refuses private, loopback, link-local and metadata addresses on every redirect hop. */
  readonly fetch: GuardedFetch
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
  /** What it resolves to is stored, as JSON, as the job's result. A throw is a failed attempt. */
  run(payload: z.output<Schema>, ctx: JobContext): Promise<unknown>
}

export const defineJob = <Schema extends z.ZodType>(handler: JobHandler<Schema>): JobHandler<Schema> =>
  handler

/** An attempt that failed, with a code that clients can branch on. Retried while attempts are left. */
export class JobError extends Error {
  readonly code: string
  readonly permanent: boolean

  constructor(code: string, message: string, options: { permanent?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'JobError'
    this.code = code
    this.permanent = options.permanent ?? false
  }
}
