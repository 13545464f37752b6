/**
 * Keeps the promised quantiles honest. A predicted spread is stretched by a factor that follows what happens: each execution
 * above its p90 widens it, each below narrows it a ninth as much. So in the long run nine of ten stay below, whatever the
 * model believes (adaptive conformal inference, on a logarithmic scale).
 */
export type Stretch = { p90: number; p99: number; seen: number }

export const initialStretch = (): Stretch => ({ p90: 0, p99: 0, seen: 0 })

/** Of the logarithm of the factor, for each execution: a tenth more after a run of ten surprises. */
const STEP_P90 = 0.012
const STEP_P99 = 0.02
/** The first executions count more, this one as much as eight later ones. */
const HASTE = 8
const HASTE_EXECUTIONS = 50
const WIDEST = 4

/** No spread is so small that nothing could surprise. */
const LEAST_SPREAD = 0.02
/** A p99 lies so much further than a p90, before anything is known: as with a normal distribution. */
const P99_TO_P90 = 1.8

export const spreadP90 = (spread: number, { p90 }: Stretch): number =>
  Math.max(spread, LEAST_SPREAD) * Math.exp(p90)

export const spreadP99 = (spread: number, { p99 }: Stretch): number =>
  Math.max(spread, LEAST_SPREAD) * P99_TO_P90 * Math.exp(p99)

/** `spread` as it was predicted; `above` how far the execution lay above the p50. */
export const calibrate = (stretch: Stretch, spread: number, above: number): void => {
  const isAbove90 = above > spreadP90(spread, stretch)
  const isAbove99 = above > spreadP99(spread, stretch)
  const haste = Math.max(1, HASTE / (1 + stretch.seen++ / HASTE_EXECUTIONS))
  stretch.p90 = clamp(stretch.p90 + haste * STEP_P90 * (isAbove90 ? 0.9 : -0.1))
  stretch.p99 = clamp(stretch.p99 + haste * STEP_P99 * (isAbove99 ? 0.99 : -0.01))
}

const clamp = (value: number): number => Math.min(Math.max(value, -WIDEST), WIDEST)
