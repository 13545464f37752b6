/**
 * The naive forecast: what the network corrects, and what it has to beat. It says the value of one season before; with a
 * season of one that is the last value.
 */
import { spreadOrigins } from './origins.ts'

/** What it says of `origin + lead`, knowing the values up to `origin`. */
export const naiveAt = (values: Float64Array, origin: number, lead: number, season: number): number =>
  values[origin + lead - season * Math.ceil(lead / season)] as number

/** Origins that are looked at for a statistic: enough for a percentile, however long the series is. */
const SAMPLED_ORIGINS = 400

/** Its errors on the values: an array for each lead, least first. */
export const naiveErrors = (
  values: Float64Array,
  { season, horizon }: { season: number; horizon: number },
): Float64Array[] =>
  Array.from({ length: horizon }, (_, n) => {
    const lead = n + 1
    const origins = spreadOrigins(season - 1, values.length - 1 - lead, SAMPLED_ORIGINS)
    return Float64Array.from(
      origins,
      (origin) => (values[origin + lead] as number) - naiveAt(values, origin, lead, season),
    ).sort()
  })

/** Errors beyond this share of them do not stretch the scale: one outlier must not make the rest look small. */
const ORDINARY_SHARE = 0.95

/** How far off it ordinarily is, by lead: the unit in which the network sees and answers. All 0 if it is never off. */
export const leadScales = (errors: readonly Float64Array[]): Float64Array => {
  const sizes = errors.map(ordinarySize)
  const anywhere = meanSize(sizes)
  // Neighbouring leads are as hard, and on a short series each alone is a noisy estimate.
  return Float64Array.from(sizes, (_, n) => meanSize(sizes.slice(Math.max(0, n - 1), n + 2)) || anywhere)
}

const ordinarySize = (errors: Float64Array): number => {
  const sizes = errors.map(Math.abs).sort()
  return meanSize(sizes.subarray(0, Math.ceil(sizes.length * ORDINARY_SHARE))) || meanSize(sizes)
}

/** The mean absolute value; 0 of none. */
export const meanSize = (errors: ArrayLike<number>): number => {
  let sum = 0
  for (let n = 0; n < errors.length; n++) sum += Math.abs(errors[n] as number)
  return sum / Math.max(1, errors.length)
}

/** The value below which a share `q` of the sorted values lies; between two of them in proportion. */
export const quantileOf = (sorted: ArrayLike<number>, q: number): number => {
  const at = (sorted.length - 1) * q
  const [below, above] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0]
  return below + (above - below) * (at - Math.floor(at))
}
