import { lookUp, type Path } from '../../../db/rules/paths.ts'
import { JobError } from '../../handler-api.ts'
import { parseExactJson } from './exact-json.ts'
import { addValue, batchValues, type RowBatch } from './row-batch.ts'

/** It is parsed as a whole, and takes several times its size in memory. */
export const MAX_JSON_BYTES = 32 * 1024 * 1024
const MAX_LINE_CHARACTERS = 1024 * 1024

/** One JSON document: an array of rows, or one that stands at `rowsAt` in it. */
export async function* readJson(
  chunks: AsyncIterable<Uint8Array>,
  rowsAt?: Path | undefined,
): AsyncGenerator<RowBatch> {
  const document = parseDocument(await readText(chunks))
  const rows = rowsAt === undefined ? document : lookUp({ $: document }, rowsAt)
  if (!Array.isArray(rows)) throw malformed(notAnArray(rowsAt !== undefined))
  yield* batchValues(rows)
}

async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return new TextDecoder().decode(Buffer.concat(parts))
}

function parseDocument(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch (error) {
    throw malformed(`The source is not JSON: ${(error as Error).message}`)
  }
}

const notAnArray = (hasPath: boolean): string =>
  hasPath
    ? 'There is no array of rows at rows_at.'
    : 'The JSON document is not an array of rows; if it has one, say where with rows_at, such as "$.data.items".'

const malformed = (message: string): JobError =>
  new JobError('source_malformed', message, { permanent: true })

/** One JSON object a line. A line that is none is a bad row. */
export async function* readNdjson(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<RowBatch> {
  let number = 0
  for await (const lines of readLines(chunks)) {
    const batch: RowBatch = { rows: [], bad: [] }
    for (const line of lines) {
      if (line.trim() === '') continue
      number += 1
      addLine(batch, number, line)
    }
    yield batch
  }
}

async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder()
  let begun = ''
  for await (const chunk of chunks) {
    const lines = (begun + decoder.decode(chunk, { stream: true })).split('\n')
    begun = lines.pop() ?? ''
    if (begun.length > MAX_LINE_CHARACTERS) throw malformed('The source has a line of more than 1 MiB.')
    yield lines
  }
  yield [begun + decoder.decode()]
}

function addLine(batch: RowBatch, number: number, line: string): void {
  try {
    addValue(batch, number, parseExactJson(line))
  } catch {
    batch.bad.push({ number, reason: 'is not JSON', text: line })
  }
}
