/** Rows in the order of their ids, newest first: as many comparisons as the number of rows has binary digits. */
type Rows = readonly { readonly id: string }[]

/** The position of the first row that is older than the id. */
export const firstBelow = (rows: Rows, id: string): number => firstWhere(rows, (own) => own < id)

/** The position of the row with the id, or of where it would be. */
export const firstAtOrBelow = (rows: Rows, id: string): number => firstWhere(rows, (own) => own <= id)

const firstWhere = (rows: Rows, holds: (id: string) => boolean): number => {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const row = rows[middle]
    if (row && holds(row.id)) high = middle
    else low = middle + 1
  }
  return low
}
