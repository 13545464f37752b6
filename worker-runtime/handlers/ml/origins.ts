/** Up to `count` origins from `first` to `last`, both among them, evenly spread; none if `last` is before `first`. */
export const spreadOrigins = (first: number, last: number, count: number): number[] => {
  const total = Math.min(count, last - first + 1)
  if (total <= 1) return total === 1 ? [last] : []
  return Array.from({ length: total }, (_, n) => first + Math.round((n * (last - first)) / (total - 1)))
}
