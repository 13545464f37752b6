/** Numbers for people. */
export const whole = (value: number): string => value.toLocaleString('en')

export const share = (value: number | null): string => (value === null ? '–' : `${Math.round(value * 100)} %`)

export const factor = (value: number | null): string => (value === null ? '–' : `× ${value.toFixed(2)}`)

export const milliseconds = (value: number | null): string =>
  value === null ? '–' : `${whole(Math.round(value))}`

/** The first column to the left, numbers to the right. */
export const padColumns = (rows: readonly (readonly string[])[], left = 1): string[] => {
  const widths = (rows[0] ?? []).map((_, n) => Math.max(...rows.map((row) => row[n]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, n) => (n < left ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}
