import { CsvError, Parser } from 'csv-parse'
import { JobError } from '../../handler-api.ts'
import { type Row, type RowBatch, setField } from './row-batch.ts'

export type CsvOptions = {
  /** One character; a comma if absent. */
  readonly delimiter?: string | undefined
  /** One character; `"` if absent. */
  readonly quote?: string | undefined
  /** Whether the first line names the columns; true if absent. */
  readonly header?: boolean | undefined
  /** Names for the columns, instead of those of the header. */
  readonly columns?: readonly string[] | undefined
  /** Texts that stand for null; only the empty one if absent. */
  readonly nulls?: readonly string[] | undefined
  /** Removes white space around fields without quotes. */
  readonly trim?: boolean | undefined
}

/** A record without end means a quote that is never closed: reading on would swallow the file. */
const MAX_RECORD_BYTES = 1024 * 1024

/** The rows of a chunk of 64 KiB would outlive the young generation before they are used: half as fast, with 10 MB more. */
const SLICE_BYTES = 16 * 1024

/**
 * CSV as rows of text. A line with another number of fields than there are columns is a bad row. A quote inside a field
 * that does not begin with one is an ordinary character, as spreadsheets have it.
 */
export async function* readCsv(
  chunks: AsyncIterable<Uint8Array>,
  options: CsvOptions = {},
): AsyncGenerator<RowBatch> {
  const parser = createParser(options)
  const toBatch = createBatcher(options)
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += SLICE_BYTES) {
      // Written and read in turns, without a pipe: the parser works within `write`, so that it is never ahead of its reader.
      parser.write(chunk.subarray(from, from + SLICE_BYTES))
      const batch = toBatch(takeRecords(parser))
      if (parser.errored) throw malformed(parser.errored)
      if (batch.rows.length > 0 || batch.bad.length > 0) yield batch
    }
  }
  yield toBatch(await finish(parser))
}

function createParser({ delimiter = ',', quote = '"', trim = false }: CsvOptions): Parser {
  const parser = new Parser({
    delimiter,
    quote,
    trim,
    bom: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: MAX_RECORD_BYTES,
  })
  // Errors are found by looking; unheard, the event would end the process.
  parser.on('error', () => {})
  return parser
}

function takeRecords(parser: Parser): string[][] {
  const records: string[][] = []
  for (let record = parser.read(); record !== null; record = parser.read()) records.push(record)
  return records
}

async function finish(parser: Parser): Promise<string[][]> {
  parser.end()
  const records: string[][] = []
  try {
    for await (const record of parser) records.push(record)
  } catch (error) {
    throw malformed(error)
  }
  return records
}

function malformed(error: unknown): unknown {
  if (!(error instanceof CsvError)) return error
  const message =
    error.code === 'CSV_MAX_RECORD_SIZE' || error.code === 'CSV_QUOTE_NOT_CLOSED'
      ? `A quote that begins before line ${error.lines} is never closed. If quotes mean nothing in this file, set csv.quote to a character that it does not have.`
      : error.message
  return new JobError('source_malformed', `The CSV cannot be read: ${message}`, { permanent: true })
}

function createBatcher({ header = true, columns, nulls = [''] }: CsvOptions) {
  const toValue = readNulls(nulls)
  let names = columns === undefined ? undefined : checkNames(columns)
  let headerDue = header
  let number = 0
  return (records: string[][]): RowBatch => {
    const batch: RowBatch = { rows: [], bad: [] }
    for (const record of records) {
      if (headerDue) {
        headerDue = false
        names ??= checkNames(record.map(nameOf))
        continue
      }
      number += 1
      names ??= record.map((_, index) => nameOf('', index))
      if (record.length === names.length) batch.rows.push({ number, row: toRow(names, record, toValue) })
      else batch.bad.push(badRecord(number, record, names))
    }
    return batch
  }
}

const nameOf = (name: string, index: number): string => name.trim() || `column_${index + 1}`

function checkNames(names: readonly string[]): readonly string[] {
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) {
    const message = `The CSV has two columns named "${twice}"; name them with csv.columns.`
    throw new JobError('source_malformed', message, { permanent: true })
  }
  return names
}

function toRow(names: readonly string[], record: string[], toValue: (text: string) => string | null): Row {
  const row: Row = {}
  for (let index = 0; index < names.length; index++) {
    setField(row, names[index] as string, toValue(record[index] as string))
  }
  return row
}

function readNulls(nulls: readonly string[]): (text: string) => string | null {
  const known = new Set(nulls)
  const longest = Math.max(-1, ...nulls.map(({ length }) => length))
  // Lengths first: most fields are too long to be one of them, and need not be hashed.
  return (text) => (text.length <= longest && known.has(text) ? null : text)
}

const badRecord = (number: number, record: string[], names: readonly string[]) => ({
  number,
  reason: `has ${record.length} ${record.length === 1 ? 'field' : 'fields'} instead of ${names.length}`,
  text: record.join(','),
})
