import { ask } from '../sources/ask.ts'
import type { NumberedRow } from '../sources/row-batch.ts'
import { type countBadRows, describeRow, type Reject } from './bad-rows.ts'
import { finishLoad, type LoadMode, type LoadStep, moveLoad } from './load-statements.ts'
import { type OpenLoad, superseded } from './open-load.ts'
import type { EtlResult } from './target.ts'

/** A load into a table, and who does it. */
export type Loading = OpenLoad & {
  readonly mode: LoadMode
  readonly holder: Pick<LoadStep, 'jobId' | 'token'>
  /** Rows that were not taken, in this attempt and in earlier ones. */
  readonly refused: ReturnType<typeof countBadRows>
}

/** Told of a row that is not taken. */
export type Refuse = (record: NumberedRow, reason: string) => void

export const refuser =
  ({ refused }: Loading, reject: Reject): Refuse =>
  ({ number, row }, reason) => {
    const bad = { number, reason, text: describeRow(row) }
    refused.add(bad)
    reject(bad)
  }

export async function begin({ connection }: Loading): Promise<void> {
  await connection.query('begin')
  // A deferred constraint would speak up at the commit, too late to tell which row it is about.
  await connection.query('set constraints all immediate')
}

/** Within the transaction of the rows: they are there and counted, or neither. */
export async function move(
  { connection, holder, refused }: Loading,
  step: Pick<LoadStep, 'from' | 'to' | 'digest'>,
): Promise<void> {
  const { count, samples } = refused.totals()
  const bad = { count, samplesJson: JSON.stringify(samples) }
  const moved = await ask(connection, moveLoad({ ...holder, ...step }, bad))
  if (moved.length === 0) throw superseded()
}

/** For an attempt that would come after this one and load again. */
export async function finish(
  { connection, holder }: Loading,
  rows: number,
  result: EtlResult,
): Promise<void> {
  const finished = await ask(connection, finishLoad({ ...holder, to: rows }, JSON.stringify(result)))
  if (finished.length === 0) throw superseded()
}
