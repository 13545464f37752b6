import { LOG_LEVELS, type LogLevel } from '../db/rules/log-levels.ts'
import { createRedactor, type Redactor } from '../functions/redaction.ts'
import { describeError } from './describe-error.ts'

export type LogFields = Record<string, unknown>
export type Logger = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>

const COLOURS: Record<LogLevel, number> = { debug: 90, info: 36, warn: 33, error: 31 }

/** One line of JSON for each event; on a terminal the same, laid out for people. */
export const createLogger = (options: {
  level: LogLevel
  /** Keeps secrets out of every line. */
  redactor?: Redactor
  pretty?: boolean
  write?: (line: string) => void
}): Logger => {
  const { write = (line) => void process.stdout.write(line), pretty = process.stdout.isTTY } = options
  const redactor = options.redactor ?? createRedactor()
  const format = pretty ? formatPretty : formatJson
  const log =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(options.level)) return
      const safe = redactor.value(plain(fields)) as LogFields
      write(`${format(new Date(), level, redactor.text(message), safe)}\n`)
    }
  return { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
}

const formatJson = (at: Date, level: LogLevel, message: string, fields: LogFields): string =>
  JSON.stringify({ time: at.toISOString(), level, message, ...fields })

/** Names and messages of tenants may hold anything: on a terminal, control characters are commands. */
const CONTROL = /\p{Cc}/u

const formatPretty = (at: Date, level: LogLevel, message: string, fields: LogFields): string => {
  const rest = Object.entries(fields).map(
    ([key, value]) =>
      `${key}=${typeof value === 'string' && !CONTROL.test(value) ? value : JSON.stringify(value)}`,
  )
  return `${at.toTimeString().slice(0, 8)} \x1b[${COLOURS[level]}m${level.padEnd(5)}\x1b[0m ${message} \x1b[90m${rest.join(' ')}\x1b[0m`
}

const plain = (fields: LogFields): LogFields =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? describeError(value) : value,
    ]),
  )
