export const seconds = (ms: number): number => Number((ms / 1000).toFixed(3))

/** `850 ms`, `4.2 s`, `12 min`, `3 h`, `5 days`. */
export const inWords = (ms: number): string => {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 90_000) return `${Number((ms / 1_000).toFixed(1))} s`
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 36 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} days`
}

/** `62 %`, `0.4 %`. */
export const inPercent = (part: number): string =>
  `${Number((part * 100).toFixed(part > 0 && part < 0.01 ? 1 : 0))} %`
