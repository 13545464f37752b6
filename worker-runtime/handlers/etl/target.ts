import type { NumberedRow, Row } from '../sources/row-batch.ts'
import { type BadRowSample, type BadRowTotals, NO_BAD_ROWS, type Reject } from './bad-rows.ts'

/** What a job of this type results in. */
export type EtlResult = {
  rows_read: number
  rows_loaded: number
  bad_rows: number
  bad_row_samples: readonly BadRowSample[]
  duration_ms: number
  /** Only if they are loaded into the result. */
  rows?: Row[]
}

/** Rows that are loaded together: those from `from` to `to` of all that come out of the transformation. */
export type OutputBatch = {
  readonly records: readonly NumberedRow[]
  /** The rows as a JSON array. */
  readonly json: string
  readonly from: number
  readonly to: number
  /** Of all rows up to `to`: tells whether a later attempt makes the same ones. */
  readonly digest: string
}

/** What earlier attempts have done. */
export type Progress = {
  /** Loaded, or refused by the target. */
  readonly rows: number
  readonly digest: string
  /** Refused by the target. Rows that could not be read or changed come up again. */
  readonly bad: BadRowTotals
}

export const NO_PROGRESS: Progress = { rows: 0, digest: '', bad: NO_BAD_ROWS }

export type Target = {
  readonly batchSize: number
  readonly progress: Progress
  /** Of an attempt that had loaded everything, and was interrupted before it could say so. */
  readonly result?: EtlResult | undefined
  /** One batch at a time, in order. Resolves once its rows are kept. */
  load(batch: OutputBatch, reject: Reject): Promise<void>
  /** Rows that are kept, those of earlier attempts included. */
  loaded(): number
  finish(result: EtlResult): Promise<EtlResult>
}
