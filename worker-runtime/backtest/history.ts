import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { UsageError } from '../command.ts'

/** One execution of somebody's history. */
export type PastJob = {
  id: string
  submitS: number
  /** 0 if unknown. */
  waitS: number
  runtimeMs: number
  type: string
  name: string
  org: string
  cpu: number
  memoryMb: number
  requestedMs: number
  payloadSize: number
  dependsOn: string[]
}

const REQUIRED = ['submit_s', 'runtime_ms', 'type']

/** A CSV file with a header, perhaps gzipped; columns as in docs/model.md. Sorted by the time of submission. */
export const readHistory = async (file: string): Promise<PastJob[]> => {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read: ${error.message}`)
  })
  const text = (file.endsWith('.gz') ? gunzip(file, bytes) : bytes).toString('utf8')
  const [header, ...lines] = text.split(/\r?\n/)
  const columns = new Map(splitLine(header ?? '').map((name, n) => [name.trim().replace(/^\ufeff/, ''), n]))
  const missing = REQUIRED.filter((name) => !columns.has(name))
  if (missing.length > 0) {
    throw new UsageError(
      `${file} has no column ${missing.join(', ')}. Its first line names: ${[...columns.keys()].join(', ')}.`,
    )
  }
  const jobs = lines.flatMap((line, n) => (line.trim() === '' ? [] : [parseLine(file, columns, line, n + 2)]))
  if (jobs.length === 0) throw new UsageError(`${file} has no executions.`)
  return jobs.sort((a, b) => a.submitS - b.submitS)
}

const gunzip = (file: string, bytes: Buffer): Buffer => {
  try {
    return gunzipSync(bytes)
  } catch {
    throw new UsageError(`${file} is not a gzip file, although its name ends so.`)
  }
}

const parseLine = (file: string, columns: Map<string, number>, line: string, number: number): PastJob => {
  const fields = splitLine(line)
  const text = (name: string): string => fields[columns.get(name) ?? -1]?.trim() ?? ''
  const amount = (name: string): number => {
    const value = Number(text(name))
    if (Number.isFinite(value) && value >= 0) return value
    throw new UsageError(
      `${file}, line ${number}: ${name} is "${text(name)}", and must be a number that is not negative.`,
    )
  }
  if (text('submit_s') === '' || text('runtime_ms') === '') {
    throw new UsageError(`${file}, line ${number}: submit_s and runtime_ms must be there.`)
  }
  return {
    id: text('id') || String(number),
    submitS: amount('submit_s'),
    waitS: amount('wait_s'),
    runtimeMs: Math.max(1, amount('runtime_ms')),
    type: text('type') || 'job',
    name: text('name'),
    org: text('org') || text('user'),
    cpu: amount('cpu'),
    memoryMb: amount('mem_mb'),
    requestedMs: amount('requested_ms'),
    payloadSize: amount('payload_size'),
    dependsOn: text('depends_on').split(/\s+/).filter(Boolean),
  }
}

/** Fields may stand in quotes, which are doubled inside. */
const splitLine = (line: string): string[] => {
  if (!line.includes('"')) return line.split(',')
  const fields: string[] = []
  for (const [, quoted, plain] of line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) {
    fields.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'))
  }
  return fields
}
