import type { CellState } from './cell.ts'

/** What a series has been through, in both layers. */
export type NetworkState = [CellState, CellState]

/** (B, 4H), a row of which is h1 c1 h2 c2 → the states of both layers. */
export const cutState = (rows: Float32Array, B: number, H: number): NetworkState => {
  if (rows.length !== B * 4 * H) throw new Error(`${rows.length} values are not ${B} states of ${4 * H}`)
  const part = (n: number): Float32Array => {
    const values = new Float32Array(B * H) // (B, H)
    for (let row = 0; row < B; row++) {
      const from = (4 * row + n) * H
      values.set(rows.subarray(from, from + H), row * H)
    }
    return values
  }
  return [
    { h: part(0), c: part(1) },
    { h: part(2), c: part(3) },
  ]
}

/** And back. */
export const joinState = ([{ h: h1, c: c1 }, { h: h2, c: c2 }]: NetworkState, H: number) => {
  const rows = new Float32Array(4 * h1.length) // (B, 4H)
  for (const [n, values] of [h1, c1, h2, c2].entries()) {
    for (let row = 0; row * H < values.length; row++) {
      rows.set(values.subarray(row * H, (row + 1) * H), (4 * row + n) * H)
    }
  }
  return rows
}
