const NUMBER = /^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$/

/** A number, or a text that is one as a whole; undefined otherwise. */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || !NUMBER.test(value)) return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}
