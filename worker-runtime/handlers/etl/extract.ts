import { type Path, parsePath } from '../../../db/rules/paths.ts'
import type { JobContext } from '../../handler-api.ts'
import { readCsv } from '../sources/csv.ts'
import { openHttp } from '../sources/http-body.ts'
import { MAX_JSON_BYTES, readJson, readNdjson } from '../sources/json.ts'
import { readQuery } from '../sources/postgres-query.ts'
import { batchValues, type RowBatch } from '../sources/row-batch.ts'
import type { Extract } from './extract-schema.ts'

export type Source = {
  readonly batches: AsyncIterable<RowBatch>
  /** How much of it has been read, from 0 to 1; undefined if nobody knows how much there is. */
  fraction(rowsRead: number): number | undefined
}

type HttpExtract = Extract & { from: 'http' }

export async function openSource(extract: Extract, ctx: JobContext): Promise<Source> {
  switch (extract.from) {
    case 'inline':
      return {
        batches: batchValues(extract.rows),
        fraction: (rowsRead) => rowsRead / Math.max(1, extract.rows.length),
      }
    case 'postgres': {
      const connection = await ctx.postgres(extract.connection)
      return { batches: readQuery(connection, extract.query, extract.params), fraction: () => undefined }
    }
    case 'http': {
      const maxBytes = extract.format === 'json' ? MAX_JSON_BYTES : undefined
      const { chunks, fraction } = await openHttp(ctx, { ...extract, maxBytes })
      return { batches: readRows(chunks, extract), fraction }
    }
  }
}

function readRows(
  chunks: AsyncIterable<Uint8Array>,
  { format, csv, rows_at }: HttpExtract,
): AsyncIterable<RowBatch> {
  if (format === 'csv') return readCsv(chunks, csv)
  if (format === 'ndjson') return readNdjson(chunks)
  return readJson(chunks, rows_at === undefined ? undefined : (parsePath(rows_at) as Path))
}
