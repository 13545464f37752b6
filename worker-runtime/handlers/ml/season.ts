/** Values that are looked at, the newest; a longer period than `LONGEST` is not looked for. */
const SAMPLE = 20_000
const LONGEST = 1_500
/** Seasons that must be there for one to be seen. */
const REPEATS = 3
/** Noise of n values has correlations of about 1/√n; the highest of a hundred of them is some three times that. */
const LEAST_CORRELATION = 0.3
const LEAST_DEVIATIONS = 3.5
/** Out of the valley before it: what wanders is like itself less and less, with small bumps on the way down. */
const LEAST_RISE = 0.1
/** Seasons are alike after two of them as after one: the shortest that comes this near to the best is it. */
const NEARLY = 0.9

/** The length of the season, by the autocorrelation; 1 if there is none. */
export function detectSeason(values: Float64Array, longest = LONGEST): number {
  const sample = detrend(values.subarray(Math.max(0, values.length - SAMPLE)))
  const lags = Math.min(LONGEST, longest, Math.floor(sample.length / REPEATS))
  const correlations = autocorrelations(sample, lags)
  const peaks = findPeaks(
    correlations,
    Math.max(LEAST_CORRELATION, LEAST_DEVIATIONS / Math.sqrt(sample.length)),
  )
  const highest = Math.max(...peaks.map((lag) => correlations[lag] as number))
  const found = peaks.find((lag) => (correlations[lag] as number) >= NEARLY * highest)
  return found === undefined ? 1 : sharpen(found, correlations)
}

/** Lags with a correlation of at least `least` that none within a quarter of them comes up to. */
function findPeaks(correlations: Float64Array, least: number): number[] {
  const peaks: number[] = []
  let valley = correlations[1] ?? 1
  for (let lag = 2; lag < correlations.length - 1; lag++) {
    const here = correlations[lag] as number
    valley = Math.min(valley, here)
    if (here < least || here - valley < LEAST_RISE) continue
    const reach = Math.max(1, Math.floor(lag / 4))
    const around = correlations.subarray(lag - reach, lag + reach + 1)
    if (around.every((correlation) => correlation <= here)) peaks.push(lag)
  }
  return peaks
}

/** The top of a wide peak is flat, and noise decides where it is highest. Being off by one shows after several seasons. */
function sharpen(lag: number, correlations: Float64Array): number {
  const reach = Math.floor(lag / 10)
  const seasons = Math.max(1, Math.floor((correlations.length - 1) / (lag + reach)))
  const likeness = (season: number): number => {
    let sum = 0
    for (let n = 1; n <= seasons; n++) sum += correlations[n * season] as number
    return sum
  }
  let best = lag
  for (let near = lag - reach; near <= lag + reach && near < correlations.length; near++) {
    if (likeness(near) > likeness(best)) best = near
  }
  return best
}

/** Less the straight line through it: a trend is like itself at every lag. */
function detrend(values: Float64Array): Float64Array {
  const n = values.length
  const middle = (n - 1) / 2
  const first = values[0] ?? 0
  let [mean, slope, squares] = [0, 0, 0]
  for (let t = 0; t < n; t++) mean += ((values[t] as number) - first) / n
  for (let t = 0; t < n; t++) {
    slope += (t - middle) * ((values[t] as number) - first - mean)
    squares += (t - middle) ** 2
  }
  const rise = squares > 0 ? slope / squares : 0
  return values.map((value, t) => value - first - mean - rise * (t - middle))
}

/** Of the lags from 0 to `lags`. */
function autocorrelations(values: Float64Array, lags: number): Float64Array {
  // Scaled first: sums of squares of the largest values allowed are no numbers any more.
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1
  const x = values.map((value) => value / largest)
  const correlations = new Float64Array(lags + 1)
  for (let lag = 0; lag <= lags; lag++) {
    let sum = 0
    for (let t = lag; t < x.length; t++) sum += (x[t] as number) * (x[t - lag] as number)
    // For each pair: plain sums would make a season look weak that is long beside the series.
    correlations[lag] = sum / (x.length - lag)
  }
  const power = correlations[0] || 1
  return correlations.map((sum) => sum / power)
}
