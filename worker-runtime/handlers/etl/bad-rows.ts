import { JobError } from '../../handler-api.ts'
import type { BadRow, Row } from '../sources/row-batch.ts'

const MAX_SAMPLES = 20
const SAMPLE_CHARACTERS = 500
const QUOTED_IN_ERROR = 3
const QUOTED_CHARACTERS = 120

/** One bad row as the result shows it. `row` is its number in the source. */
export type BadRowSample = { row: number; reason: string; text: string }

export type BadRowTotals = { readonly count: number; readonly samples: readonly BadRowSample[] }

/** A row that cannot be used. Throws when the job allows no more of them. */
export type Reject = (bad: BadRow) => void

export const NO_BAD_ROWS: BadRowTotals = { count: 0, samples: [] }

/** Counts bad rows, and keeps the first ones to show. */
export function countBadRows({ count: earlier, samples: earlierSamples }: BadRowTotals): {
  add(bad: BadRow): void
  totals(): BadRowTotals
} {
  let count = earlier
  const samples = [...earlierSamples]
  return {
    add: (bad) => {
      count += 1
      if (samples.length < MAX_SAMPLES) samples.push(toSample(bad))
    },
    totals: () => ({ count, samples: samples.toSorted((a, b) => a.row - b.row) }),
  }
}

const toSample = ({ number, reason, text }: BadRow): BadRowSample => ({
  row: number,
  reason: cut(reason),
  text: cut(text),
})

/** A cut may split a surrogate pair, and Postgres stores neither halves nor NUL. */
const cut = (text: string, length = SAMPLE_CHARACTERS): string =>
  text.slice(0, length).toWellFormed().replaceAll('\0', '\ufffd')

export const describeRow = (row: Row): string => JSON.stringify(row)

export function tooManyBadRows(max: number, { count, samples }: BadRowTotals): JobError {
  const quoted = samples
    .slice(0, QUOTED_IN_ERROR)
    .map(({ row, reason, text }) => `Row ${row} (${reason}): ${cut(text, QUOTED_CHARACTERS)}`)
  const found = count === 1 ? 'A row cannot be used' : `${count} rows cannot be used`
  const message = `${found}, and max_bad_rows is ${max}. ${quoted.join('; ')}`
  return new JobError('too_many_bad_rows', message, { permanent: true })
}
