/**
 * How far is forecast. What workers are scaled by is the work within the lead time, so that is what is forecast: not the work
 * of each minute, whose medians do not add up to the median of their sum, but that of the first minute, of the first two
 * together, and so on. What is said of a single minute is what it adds.
 */
export type Horizon = {
  /** Minutes that the lead time reaches into: the window that forecasts are judged by. */
  readonly window: number
  /** Windows that are forecast, shortest first; the judged one is among them. */
  readonly spans: readonly number[]
  /** Minutes that are told. */
  readonly minutes: number
}

/** A forecast is used until the next, and should one fail until the one after that. */
const SPARE_MINUTES = 3
/** More windows are not asked for one by one: those between are in proportion. */
const ONE_BY_ONE = 5

export const horizonOf = (leadSeconds: number): Horizon => {
  const window = Math.max(1, Math.ceil(leadSeconds / 60))
  const minutes = window + SPARE_MINUTES
  const spans =
    minutes <= ONE_BY_ONE
      ? Array.from({ length: minutes }, (_, n) => n + 1)
      : [...new Set([1, Math.ceil(window / 2), window, minutes])]
  return { window, spans, minutes }
}

/** What each minute adds, from the work within each of the spans. Work that has come does not go again. */
export const spreadOverMinutes = ({ spans, minutes }: Horizon, totals: readonly number[]): number[] => {
  const added: number[] = []
  let [doneSpan, doneTotal] = [0, 0]
  for (const [n, span] of spans.entries()) {
    const total = Math.max(doneTotal, totals[n] ?? 0)
    for (let minute = doneSpan; minute < span; minute++) added.push((total - doneTotal) / (span - doneSpan))
    doneSpan = span
    doneTotal = total
  }
  return added.slice(0, minutes)
}
