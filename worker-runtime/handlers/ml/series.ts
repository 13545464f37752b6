import { type JobContext, JobError } from '../../handler-api.ts'
import { readCsv } from '../sources/csv.ts'
import { openHttp } from '../sources/http-body.ts'
import { toNumber } from '../sources/number.ts'
import { readQuery } from '../sources/postgres-query.ts'
import type { NumberedRow, Row, RowBatch } from '../sources/row-batch.ts'
import { MAX_SIZE, MAX_VALUES, type MlPayload } from './schema.ts'

type Source = MlPayload['series']

/** How spreadsheets, R and pandas write a value that is missing. */
const NULLS = ['', 'NA', 'N/A', 'NaN', 'nan', 'null', 'NULL']
const SHOWN_COLUMNS = 20
const SHOWN_CHARACTERS = 60

/** The values in order; NaN where one is missing. */
export async function readSeries(series: Source, ctx: JobContext): Promise<Float64Array> {
  if (series.from === 'inline') return Float64Array.from(series.values, (value) => value ?? Number.NaN)
  const values: number[] = []
  for await (const { rows, bad } of await openRows(series, ctx)) {
    ctx.signal.throwIfAborted()
    const [unreadable] = bad
    if (unreadable) throw refuse('source_malformed', `Row ${unreadable.number} ${unreadable.reason}.`)
    for (const row of rows) values.push(readValue(row, series.column))
    if (values.length > MAX_VALUES) {
      const message = `The series has more than ${MAX_VALUES} values. Give it the newest, or sums of several each.`
      throw refuse('series_too_long', message)
    }
  }
  return Float64Array.from(values)
}

async function openRows(
  series: Exclude<Source, { from: 'inline' }>,
  ctx: JobContext,
): Promise<AsyncIterable<RowBatch>> {
  if (series.from === 'postgres') {
    return readQuery(await ctx.postgres(series.connection), series.query, series.params)
  }
  const { chunks } = await openHttp(ctx, series)
  return readCsv(chunks, { nulls: NULLS, trim: true, ...series.csv })
}

function readValue({ number, row }: NumberedRow, wanted: string | undefined): number {
  const column = wanted ?? onlyColumn(row)
  if (!Object.hasOwn(row, column)) {
    throw refuse('unknown_column', `There is no column "${column}". ${describeColumns(row)}`)
  }
  const given = row[column]
  if (given === null) return Number.NaN
  const value = toNumber(given)
  if (value !== undefined && Math.abs(value) <= MAX_SIZE) return value
  const shown = (JSON.stringify(given) ?? '').slice(0, SHOWN_CHARACTERS)
  const wrong = value === undefined ? 'is not a number' : `is beyond ±${MAX_SIZE}`
  throw refuse('not_a_number', `Row ${number} has ${shown} in the column "${column}", which ${wrong}.`)
}

function onlyColumn(row: Row): string {
  const [name, another] = Object.keys(row)
  if (name !== undefined && another === undefined) return name
  throw refuse('unknown_column', `Say with "column" where the values are. ${describeColumns(row)}`)
}

function describeColumns(row: Row): string {
  const names = Object.keys(row)
  const more = names.length > SHOWN_COLUMNS ? ` and ${names.length - SHOWN_COLUMNS} more` : ''
  return `The columns are ${names.slice(0, SHOWN_COLUMNS).join(', ')}${more}.`
}

const refuse = (code: string, message: string): JobError => new JobError(code, message, { permanent: true })
