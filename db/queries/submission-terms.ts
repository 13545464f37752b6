/** Of the columns of a job. */
export const RANK = `rank_base + rank_slope * ln(predicted_ms)`
export const START_BY = `deadline - predicted_p90_ms * interval '1 millisecond'`

export const where = (conditions: (string | false)[]): string => {
  const holding = conditions.filter((condition) => condition !== false)
  return holding.length > 0 ? `\n      where ${holding.join('\n        and ')}` : ''
}
