import { duration } from '../../ui/format.ts'

/** A time that goes on, in whole seconds: 4 s · 2 min 5 s. */
export const elapsed = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1_000)
}
