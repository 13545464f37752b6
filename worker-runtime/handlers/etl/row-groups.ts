import type { NumberedRow } from '../sources/row-batch.ts'

/** Rows with the same fields: one insert takes them all. */
export type RowGroup = { readonly columns: readonly string[]; readonly records: NumberedRow[] }

/**
 * A field that a row lacks gets the default of its column, or keeps its value when a row is changed, so rows with other
 * fields need another statement. If the order matters, because a later row may change an earlier one, only neighbours are joined.
 */
export function groupByFields(
  records: readonly NumberedRow[],
  { ordered }: { ordered: boolean },
): RowGroup[] {
  const groups: RowGroup[] = []
  const byFields = new Map<string, RowGroup>()
  let last: { fields: string; group: RowGroup } | undefined
  for (const record of records) {
    const columns = Object.keys(record.row)
    const fields = columns.join('\0')
    const known = last?.fields === fields ? last.group : ordered ? undefined : byFields.get(fields)
    const group = known ?? { columns, records: [] }
    if (!known) {
      groups.push(group)
      byFields.set(fields, group)
    }
    group.records.push(record)
    last = { fields, group }
  }
  return groups
}
