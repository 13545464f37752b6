/** Counts by quarter powers of two, as `log_bucket` of the database numbers them: the first is all below 1. */

const startOf = (bucket: number): number => (bucket === 0 ? 0 : 2 ** ((bucket - 1) / 4))

/** The value that the share `p` does not exceed, to about a tenth; null if there are none. */
export const quantileOf = (counts: readonly number[], p: number): number | null => {
  const total = counts.reduce((sum, count) => sum + count, 0)
  let left = p * total
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && left <= count) {
      const from = startOf(bucket)
      return from + (startOf(bucket + 1) - from) * (left / count)
    }
    left -= count
  }
  return null
}
