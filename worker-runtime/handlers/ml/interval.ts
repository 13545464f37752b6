import type { Answer } from './answers.ts'
import { naiveAt, quantileOf } from './naive.ts'
import type { Plan } from './plan.ts'
import type { Calibration } from './validation.ts'

/** A forecast of one value: the median, and between the other two eight of ten. */
export type Interval = { p10: number; p50: number; p90: number }

export function networkInterval(
  { encoder }: Plan,
  { origin, lead, heads }: Answer,
  { below, above }: Calibration,
): Interval {
  const [low, median, high] = heads as unknown as [number, number, number]
  const toValue = (answer: number): number => encoder.value(origin, lead, answer)
  return {
    p10: toValue(median - below * (median - low)),
    p50: toValue(median),
    p90: toValue(median + above * (high - median)),
  }
}

/** The naive forecast, as far off as it has been at that lead. */
export function naiveInterval(
  { values, naiveSeason }: Plan,
  errors: readonly Float64Array[],
  { origin, lead }: { origin: number; lead: number },
): Interval {
  const p50 = naiveAt(values, origin, lead, naiveSeason)
  const ofLead = errors[lead - 1] as Float64Array
  return {
    p10: p50 + Math.min(0, quantileOf(ofLead, 0.1)),
    p50,
    p90: p50 + Math.max(0, quantileOf(ofLead, 0.9)),
  }
}
