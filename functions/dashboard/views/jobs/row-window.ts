export type RowWindow = { first: number; end: number }

/** Rows beyond each edge, so that a fast scroll meets no blank. */
const MARGIN = 8
/** The window moves by this many rows at a time: most frames of a scroll change nothing. */
const STEP = 4

/** Which of the rows are drawn. `above`: how far the top of the list is above that of the screen. */
export const rowWindow = (sizes: {
  above: number
  screen: number
  rowHeight: number
  rows: number
}): RowWindow => {
  const { above, screen, rowHeight, rows } = sizes
  const from = Math.floor(Math.max(0, above) / rowHeight) - MARGIN
  const to = Math.ceil(Math.max(0, above + screen) / rowHeight) + MARGIN
  const first = Math.min(Math.max(0, Math.floor(from / STEP) * STEP), rows)
  return { first, end: Math.max(first, Math.min(rows, Math.ceil(to / STEP) * STEP)) }
}
