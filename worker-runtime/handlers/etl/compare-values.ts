/** Numbers by size, texts by code unit, and numbers before texts before the rest; -1, 0 or 1. */
export function compareValues(a: unknown, b: unknown): number {
  const rankA = rankOf(a)
  const rankB = rankOf(b)
  if (rankA !== rankB) return rankA < rankB ? -1 : 1
  const [left, right] = rankA === OTHER ? [JSON.stringify(a), JSON.stringify(b)] : [a as number, b as number]
  if (left === right) return 0
  return left < right ? -1 : 1
}

const OTHER = 3

const rankOf = (value: unknown): number => {
  if (typeof value === 'number') return 0
  if (typeof value === 'string') return 1
  return typeof value === 'boolean' ? 2 : OTHER
}
