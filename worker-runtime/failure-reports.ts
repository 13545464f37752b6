import { describeError } from './describe-error.ts'
import type { Logger } from './logger.ts'

/** Makes the reporter of one part of a worker. */
export type FailureReports = (part: string) => (error: Error) => void

const REPEAT_MS = 10_000

/**
 * A part that goes on failing in the same way says so every ten seconds, and how often it was. Without the database all
 * of them fail, several times a second; the line that matters must not drown in the others.
 */
export const createFailureReports = (options: { logger: Logger; now: () => number }): FailureReports => {
  const parts = new Map<string, { saidAtMs: number; reason: string; unsaid: number }>()

  return (part) => (error) => {
    const reason = describeError(error)
    const last = parts.get(part)
    if (last && last.reason === reason && options.now() - last.saidAtMs < REPEAT_MS) {
      last.unsaid++
      return
    }
    const unsaid = last?.unsaid ?? 0
    options.logger.error(`${part} failed`, { error, ...(unsaid > 0 && { failures_since_last_line: unsaid }) })
    parts.set(part, { saidAtMs: options.now(), reason, unsaid: 0 })
  }
}
