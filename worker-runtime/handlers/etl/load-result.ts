import { JobError } from '../../handler-api.ts'
import type { Row } from '../sources/row-batch.ts'
import { NO_PROGRESS, type Target } from './target.ts'

const MAX_ROWS = 10_000
const MAX_BYTES = 1024 * 1024
const BATCH_ROWS = 1000

/** Rows that become part of the job's result. */
export function collectResult(): Target {
  const rows: Row[] = []
  let bytes = 0
  return {
    batchSize: BATCH_ROWS,
    progress: NO_PROGRESS,
    load: async ({ records, json }) => {
      bytes += Buffer.byteLength(json)
      for (const { row } of records) rows.push(row)
      if (rows.length > MAX_ROWS || bytes > MAX_BYTES) throw tooLarge()
    },
    loaded: () => rows.length,
    finish: async (result) => ({ ...result, rows }),
  }
}

const tooLarge = (): JobError =>
  new JobError(
    'result_too_large',
    `A result has at most ${MAX_ROWS} rows and ${MAX_BYTES / 1024} KiB. Load into "postgres" or "http", or reduce the rows with ` +
      'filter, group or limit.',
    { permanent: true },
  )
