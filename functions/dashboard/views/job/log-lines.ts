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

/** When attempts have started that bear the number of one before: those of a job that was retried count from 1 again. */
export const restartsOf = (attempts: readonly Attempt[]): string[] =>
  attempts
    .filter(({ attempt }, n) => attempts.findIndex((other) => other.attempt === attempt) < n)
    .map(({ started_at }) => started_at)

/** Whether a line is the first of its attempt. Where the number does not tell, the time at which one has started does. */
export const startsAttempt = (
  line: LogLine,
  before: LogLine | undefined,
  restarts: readonly string[],
): boolean => line.attempt !== before?.attempt || restarts.some((at) => isBetween(at, before.at, line.at))

/** The clock of the database and that of the worker that writes may differ a little. */
const SKEW_MS = 50

const isBetween = (at: string, from: string, to: string): boolean => {
  const [ms, fromMs, toMs] = [Date.parse(at) - SKEW_MS, Date.parse(from), Date.parse(to)]
  return fromMs < ms && ms <= toMs
}

export const toText = (lines: readonly LogLine[]): string =>
  lines.map(({ at, level, attempt, message }) => `${at} ${level} [${attempt}] ${message}`).join('\n')
