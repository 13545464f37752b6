import type { PredictionAccuracy } from '../../api/answers.ts'

export type Sample = PredictionAccuracy['samples'][number]

/** Types look different in colour and in shape: not everybody tells all colours apart. */
export type Look = { label: string; color: string; shape: string }

const LOOKS = [
  { color: 'accent', shape: 'M-3.500 0a3.500 3.500 0 1 0 7 0a3.500 3.500 0 1 0-7 0z' },
  { color: 'green', shape: 'M-3.200-3.200h6.400v6.400h-6.400z' },
  { color: 'amber', shape: 'M0-4.200 4 3h-8z' },
  { color: 'violet', shape: 'M0-4.500 4.500 0 0 4.500-4.500 0z' },
  { color: 'red', shape: 'M0 4.200 4-3h-8z' },
  { color: 'blue', shape: 'M-1.500-4.500h3v3h3v3h-3v3h-3v-3h-3v-3h3z' },
]
const REST = { color: 'muted', shape: 'M-2.500 0a2.500 2.500 0 1 0 5 0a2.500 2.500 0 1 0-5 0z' }

/** A look for each type, most frequent first; those beyond the sixth share one. */
export const looksOf = (samples: readonly Sample[]): { legend: Look[]; of: (type: string) => Look } => {
  const counts = Map.groupBy(samples, ({ type }) => type)
  const types = [...counts].sort(([, a], [, b]) => b.length - a.length).map(([type]) => type)
  const own = types.slice(0, LOOKS.length).map((type, n) => ({ label: type, ...(LOOKS[n] ?? REST) }))
  const rest = { label: 'other types', ...REST }
  const byType = new Map(own.map((look) => [look.label, look]))
  return {
    legend: types.length > LOOKS.length ? [...own, rest] : own,
    of: (type) => byType.get(type) ?? rest,
  }
}

const GROUPS = 8
const LEAST_OF_GROUP = 5

/**
 * How far p90s lie above their predictions: medians of up to eight groups of alike predictions, as a line from the smallest
 * prediction to the largest.
 */
export const p90Line = (samples: readonly Sample[]): { x: number; y: number }[] => {
  const sorted = samples
    .filter(({ predicted_ms, predicted_p90_ms }) => predicted_ms > 0 && predicted_p90_ms > 0)
    .sort((a, b) => a.predicted_ms - b.predicted_ms)
  const [first, last] = [sorted[0], sorted.at(-1)]
  if (!first || !last) return []
  const groups = Math.max(1, Math.min(GROUPS, Math.floor(sorted.length / LEAST_OF_GROUP)))
  const size = Math.ceil(sorted.length / groups)
  const middles = Array.from({ length: groups }, (_, n) => sorted.slice(n * size, (n + 1) * size))
    .filter((group) => group.length > 0)
    .map((group) => ({
      x: median(group.map(({ predicted_ms }) => predicted_ms)),
      factor: median(group.map((one) => one.predicted_p90_ms / one.predicted_ms)),
    }))
  const ends = [
    { x: first.predicted_ms, factor: middles[0]?.factor ?? 1 },
    ...middles,
    { x: last.predicted_ms, factor: middles.at(-1)?.factor ?? 1 },
  ]
  return ends.map(({ x, factor }) => ({ x, y: x * factor }))
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] ?? 0

/** Took longer than nine of ten should. */
export const isLate = ({ actual_ms, predicted_p90_ms }: Sample): boolean => actual_ms > predicted_p90_ms

/** The place of the nearest point, if one is within reach. */
export const nearest = (
  points: readonly { x: number; y: number }[],
  to: { x: number; y: number },
  reach: number,
): number | undefined => {
  let [best, least] = [-1, reach * reach]
  points.forEach(({ x, y }, n) => {
    const distance = (x - to.x) ** 2 + (y - to.y) ** 2
    if (distance <= least) [best, least] = [n, distance]
  })
  return best < 0 ? undefined : best
}
