import type { z } from 'zod'
import type { LogLevel } from '../db/rules/log-levels.ts'

/** What a handler may use. Everything it needs from the worker reaches it through `ctx`. */
export type JobContext = {
  readonly jobId: string
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

const SNOOZE = Symbol('snooze')

export type Snooze = { readonly [SNOOZE]: number }

/** Returned by a handler: not yet, try again later. The attempt does not count. */
export const snooze = (seconds: number): Snooze => ({ [SNOOZE]: seconds })

export const snoozedSeconds = (result: unknown): number | undefined =>
  typeof result === 'object' && result !== null && SNOOZE in result ? Number(result[SNOOZE]) : undefined
