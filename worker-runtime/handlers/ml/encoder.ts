/**
 * A series as the network sees it. Everything is a difference to the naive forecast, in units of its ordinary error at that
 * lead: so the scale of the series does not matter, and a network that answers 0 answers the naive forecast.
 * What is seen at (origin, lead) is made of values up to the origin only.
 */
import { naiveAt } from './naive.ts'

export const INPUTS = 18

export type Encoder = {
  readonly horizon: number
  /** The first origin that has a whole season behind it. */
  readonly firstOrigin: number
  write(origin: number, lead: number, into: Float32Array, offset: number): void
  /** What the network should have answered. */
  target(origin: number, lead: number): number
  /** What an answer means, in the unit of the series. */
  value(origin: number, lead: number, answer: number): number
}

export type EncoderOptions = {
  values: Float64Array
  /** 1: none. */
  season: number
  /** That of the naive forecast: the same, or 1. */
  naiveSeason: number
  /** By lead, the first that of lead 1. */
  scales: Float64Array
}

/** Beyond so many ordinary errors an input says no more: an outlier would drown the rest on the direct path. */
const CLIP = 8
/** And beyond so many a target says no more: a float must hold it, and sums of it. */
const TARGET_CLIP = 1e6
/** Level and trend of a series without a season are those of so many values. */
const UNSEASONAL_SPAN = 72

export function createEncoder({ values, season, naiveSeason, scales }: EncoderOptions): Encoder {
  const isSeasonal = season > 1
  const span = isSeasonal ? season : UNSEASONAL_SPAN
  const levels = [6, 24, span].map((length) => rollingMeans(values, length))
  const spanMeans = levels.at(-1) as Float64Array
  const profile = isSeasonal ? smoothAcrossSeasons(values, season) : values
  const scaleOf = (lead: number): number => scales[lead - 1] as number
  const naive = (origin: number, lead: number): number => naiveAt(values, origin, lead, naiveSeason)

  const write: Encoder['write'] = (origin, lead, into, offset) => {
    const base = naive(origin, lead)
    const unit = scaleOf(lead)
    let at = offset
    const put = (value: number): void => {
      into[at++] = value
    }
    const putSize = (difference: number): void => put(clip(difference / unit, CLIP))
    // A value that is not known says nothing, as one does that is where the naive forecast is.
    const putValue = (value: number | undefined): void => putSize((value ?? base) - base)

    for (let back = 0; back < 3; back++) putValue(values[origin - back])
    // The same moment of earlier seasons.
    const moment = origin + lead - season * Math.ceil(lead / season)
    for (let back = 0; back < 2; back++) putValue(isSeasonal ? values[moment - back * season] : undefined)
    putValue(isSeasonal ? profile[moment] : undefined)
    for (const means of levels) putValue(means[origin])
    const level = spanMeans[origin] as number
    putSize(((level - (spanMeans[origin - span] ?? level)) * lead) / span)
    // How far this season is from the last one, just now.
    for (const now of [origin, origin - 1]) {
      const [value, before] = [values[now], isSeasonal ? values[now - season] : undefined]
      putSize(value === undefined || before === undefined ? 0 : value - before)
    }
    put(lead / scales.length)
    put(1 / lead)
    const phase = (2 * Math.PI * ((origin + lead) % season)) / season
    for (const turns of [1, 2]) {
      put(isSeasonal ? Math.sin(turns * phase) : 0)
      put(isSeasonal ? Math.cos(turns * phase) : 0)
    }
  }

  return {
    horizon: scales.length,
    firstOrigin: season - 1,
    write,
    target: (origin, lead) =>
      clip(((values[origin + lead] as number) - naive(origin, lead)) / scaleOf(lead), TARGET_CLIP),
    value: (origin, lead, answer) => naive(origin, lead) + answer * scaleOf(lead),
  }
}

const clip = (value: number, size: number): number => Math.min(Math.max(value, -size), size)

/** At each index the mean of the last `span` values. Summed anew once a span, so that rounding errors do not add up. */
function rollingMeans(values: Float64Array, span: number): Float64Array {
  let sum = 0
  return values.map((value, index) => {
    if (index % span === 0) {
      sum = 0
      for (let n = Math.max(0, index - span + 1); n <= index; n++) sum += values[n] as number
    } else {
      sum += value - (index < span ? 0 : (values[index - span] as number))
    }
    return sum / Math.min(span, index + 1)
  })
}

/** The newest season's share in the profile, which is about the mean of the last seven. */
const NEWEST_SHARE = 0.25

/** At each index the running mean of the same moment of all seasons so far. */
function smoothAcrossSeasons(values: Float64Array, season: number): Float64Array {
  const profile = values.slice()
  for (let n = season; n < profile.length; n++) {
    const before = profile[n - season] as number
    const share = Math.max(NEWEST_SHARE, 1 / (Math.floor(n / season) + 1))
    profile[n] = before + share * ((values[n] as number) - before)
  }
  return profile
}
