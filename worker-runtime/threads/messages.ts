import type { MessagePort } from 'node:worker_threads'
import type { LogLevel } from '../../db/rules/log-levels.ts'
import type { NamedConnections } from '../connections/named-connections.ts'
import type { AllowList } from '../egress/address-guard.ts'
import type { EndedOutcome, ExecutionAborted } from '../outcome.ts'
import type { FetchSpan } from '../tracing/job-tracing.ts'

/** What every attempt in a thread may use. Given to the thread at its start. */
export type ThreadSettings = { readonly allow: AllowList; readonly connections: NamedConnections }

/** An attempt, as it is handed to a thread. All that is said about it from then on goes through its own port. */
export type ThreadTask = {
  /** The module that exports `run`. */
  readonly module: string
  readonly port: MessagePort
  readonly payload: unknown
  readonly jobId: string
  readonly orgId: string
  readonly attempt: number
  readonly fencingToken: string
  readonly lastCheckpoint: unknown
  /** Of the attempt's span. Undefined: nothing is traced. */
  readonly traceparent: string | undefined
  /** One number in memory that both sides see: not 0 from the abort on. A thread that computes hears no message. */
  readonly abortFlag: Int32Array
}

export type ToThread =
  | { readonly kind: 'abort'; readonly why: ExecutionAborted['why']; readonly message: string }
  /** A checkpoint is stored, or could not be. */
  | { readonly kind: 'stored'; readonly id: number; readonly error: string | undefined }

export type FromThread =
  | { readonly kind: 'log'; readonly level: LogLevel; readonly message: string }
  | { readonly kind: 'progress'; readonly fraction: number; readonly note: string | undefined }
  | { readonly kind: 'checkpoint'; readonly id: number; readonly json: string }
  | { readonly kind: 'fetched'; readonly fetched: FetchSpan }
  | AttemptEnded
  /** Nothing of an aborted attempt is left: the thread can be ended. */
  | { readonly kind: 'closed' }

/**
 * How the attempt ended. An outcome is plain data, so it crosses over as it is. `closed`: what the attempt has opened is
 * closed. An aborted one does not wait for that.
 */
export type AttemptEnded = {
  readonly kind: 'returned' | 'threw'
  readonly outcome: EndedOutcome
  readonly closed: boolean
}
