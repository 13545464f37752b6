import { JobError } from '../../handler-api.ts'

/** Values without gaps: none are let through, or they are put on the line between their neighbours. */
export function fillMissing(
  values: Float64Array,
  missing: 'refuse' | 'interpolate',
): { values: Float64Array; interpolated: number } {
  const gaps = [...values.keys()].filter((index) => Number.isNaN(values[index]))
  const [first] = gaps
  if (first === undefined) return { values, interpolated: 0 }
  if (missing === 'refuse') {
    const others = gaps.length > 1 ? `, and ${gaps.length - 1} more are` : ''
    throw refuse(
      `Value ${first + 1} is missing${others}. With "missing": "interpolate" it is put between its neighbours.`,
    )
  }
  // A line has two ends. What is guessed at the end of a series would be what its forecast starts from.
  for (const [index, end] of [
    [0, 'first'],
    [values.length - 1, 'last'],
  ] as const) {
    if (!Number.isNaN(values[index])) continue
    throw refuse(`The ${end} value is missing, and has a neighbour on one side only. Leave it out.`)
  }
  const filled = values.slice()
  for (const index of gaps) filled[index] = interpolate(filled, index)
  return { values: filled, interpolated: gaps.length }
}

/** Those before it are there already. */
function interpolate(values: Float64Array, index: number): number {
  const before = values[index - 1] as number
  let next = index + 1
  while (Number.isNaN(values[next])) next++
  return before + ((values[next] as number) - before) / (next - index + 1)
}

const refuse = (message: string): JobError => new JobError('missing_values', message, { permanent: true })
