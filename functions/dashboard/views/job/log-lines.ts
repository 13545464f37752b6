import { LOG_LEVELS, type LogLevel } from '../../../../db/rules/log-levels.ts'
import type { Attempt, LogLine } from '../../api/answers.ts'

export type Log = {
  readonly lines: readonly LogLine[]
  /** How many of the lines were before the page that was read last, and the cursor that it was read from. */
  readonly settled: number
  readonly cursor: string
}

/** Before the first line, as the stream calls it. */
export const LOG_START = 'start'

export const EMPTY_LOG: Log = { lines: [], settled: 0, cursor: LOG_START }

/**
 * A page, or what the stream has sent, after a cursor. The last page has no cursor of its own behind it: what follows is
 * read from its beginning once more, and takes its place.
 */
export const append = (log: Log, page: { lines: readonly LogLine[]; next: string | null }): Log => {
  const settled = log.lines.slice(0, log.settled)
  const lines = [...settled, ...page.lines]
  return page.next === null ? { ...log, lines } : { lines, settled: lines.length, cursor: page.next }
}

export const atLeast = (lines: readonly LogLine[], level: LogLevel): readonly LogLine[] => {
  const least = LOG_LEVELS.indexOf(level)
  return least <= 0 ? lines : lines.filter((line) => LOG_LEVELS.indexOf(line.level) >= least)
}

/** When attempts began whose number an earlier one has had. */
export const repeatedStarts = (attempts: readonly Pick<Attempt, 'attempt' | 'started_at'>[]): string[] => {
  const known = new Set<number>()
  return attempts.flatMap(({ attempt, started_at }) => {
    const isRepeated = known.has(attempt)
    known.add(attempt)
    return isRepeated ? [started_at] : []
  })
}

/**
 * Whether a line is the first of its attempt. Attempts of a job that was retried count from 1 again: then the time at which
 * one has started tells them apart.
 */
export const startsAttempt = (
  line: LogLine,
  before: LogLine | undefined,
  starts: readonly string[],
): boolean => line.attempt !== before?.attempt || starts.some((start) => isBetween(start, before.at, line.at))

const isBetween = (at: string, from: string, to: string): boolean => from < at && at <= to

export const toText = (lines: readonly LogLine[]): string =>
  lines.map(({ at, level, attempt, message }) => `${at} ${level} [${attempt}] ${message}`).join('\n')
