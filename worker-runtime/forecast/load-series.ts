/** Work that came, by the minute, without gaps: minutes in which nothing came are zeros. In milliseconds of predicted work. */
export type LoadSeries = {
  /** Minutes since 1970 up to the first value. */
  readonly firstMinute: number
  readonly values: Float64Array
}

/** Minutes that the calendar repeats itself after. */
export type Calendar = { hour: number; day: number; week: number }

export const CALENDAR: Calendar = { hour: 60, day: 1_440, week: 10_080 }

/** From the first minute in which something came to the last that is over. Rows of other minutes are left out. */
export const toSeries = (
  rows: readonly { minute: number; workMs: number }[],
  endMinute: number,
): LoadSeries => {
  const known = rows.filter(({ minute, workMs }) => minute < endMinute && Number.isFinite(workMs))
  const firstMinute = known.reduce((least, { minute }) => Math.min(least, minute), endMinute)
  const values = new Float64Array(endMinute - firstMinute)
  for (const { minute, workMs } of known) values[minute - firstMinute] = Math.max(0, workMs)
  return { firstMinute, values }
}

/** The same without what was not known yet when `length` minutes were over. */
export const upTo = ({ firstMinute, values }: LoadSeries, length: number): LoadSeries => ({
  firstMinute,
  values: values.subarray(0, length),
})
