export type Row = Record<string, unknown>

/** A row and its place in the source, counted from 1; headings and blank lines do not count. */
export type NumberedRow = { readonly number: number; readonly row: Row }

/** A row that could not be used. `text` is the row as it was, or what can be shown of it. */
export type BadRow = { readonly number: number; readonly reason: string; readonly text: string }

/** Rows travel in batches: an `await` for each one would cost more than reading it. */
export type RowBatch = { readonly rows: NumberedRow[]; readonly bad: BadRow[] }

const BATCH_ROWS = 1000

/** Rows that are in memory already, batch by batch; what is not an object is a bad row. */
export async function* batchValues(values: readonly unknown[]): AsyncGenerator<RowBatch> {
  for (let from = 0; from < values.length; from += BATCH_ROWS) {
    const batch: RowBatch = { rows: [], bad: [] }
    for (const [index, value] of values.slice(from, from + BATCH_ROWS).entries()) {
      addValue(batch, from + index + 1, value)
    }
    yield batch
  }
}

export function addValue(batch: RowBatch, number: number, value: unknown): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    batch.rows.push({ number, row: value as Row })
  } else {
    batch.bad.push({ number, reason: 'is not an object', text: JSON.stringify(value) ?? '' })
  }
}

/** Assigned, a `__proto__` would change the prototype instead. */
export function setField(row: Row, name: string, value: unknown): void {
  if (name !== '__proto__') row[name] = value
  else Object.defineProperty(row, name, { value, enumerable: true, configurable: true, writable: true })
}
