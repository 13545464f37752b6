import type { Scale } from './scale.ts'

/** Powers of ten as long as there is a unit for them, then what a clock and a calendar have. */
const TICKS = [
  { value: 0.1, label: '0.1 ms' },
  { value: 1, label: '1 ms' },
  { value: 10, label: '10 ms' },
  { value: 100, label: '100 ms' },
  { value: 1_000, label: '1 s' },
  { value: 10_000, label: '10 s' },
  { value: 60_000, label: '1 min' },
  { value: 600_000, label: '10 min' },
  { value: 3_600_000, label: '1 h' },
  { value: 21_600_000, label: '6 h' },
  { value: 86_400_000, label: '1 d' },
  { value: 864_000_000, label: '10 d' },
  { value: 8_640_000_000, label: '100 d' },
]

/** There is no zero on a logarithmic axis: what took no measurable time stands here. */
const LEAST_MS = 0.1
/** Room around the outermost values. */
const ROOM = 1.5
/** Narrower, and differences of a few percent would look like much. */
const LEAST_SPAN = 100

/** A logarithmic axis of durations in milliseconds that has room for all values. */
export const durationScale = (values: readonly number[]): Scale => {
  const [low, high] = rangeOf(values.filter(Number.isFinite).map(atLeast))
  const span = Math.log(high / low)
  return {
    place: (value) => Math.log(atLeast(value) / low) / span,
    ticks: TICKS.filter(({ value }) => value >= low && value <= high),
  }
}

const atLeast = (ms: number): number => Math.max(LEAST_MS, ms)

const rangeOf = (values: readonly number[]): [number, number] => {
  if (values.length === 0) return [1, 60_000]
  const [low, high] = [Math.min(...values) / ROOM, Math.max(...values) * ROOM]
  const widening = Math.sqrt(Math.max(1, (LEAST_SPAN * low) / high))
  return [low / widening, high * widening]
}
