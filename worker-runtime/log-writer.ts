import { appendJobLogs, type NewLogLine } from '../db/queries/job-logs.ts'
import type { Run } from '../db/query.ts'
import type { LeaseKey } from '../db/queue/exchange.ts'
import type { LogLevel } from '../db/rules/log-levels.ts'
import type { Redactor } from '../functions/redaction.ts'
import { isRefused } from './database.ts'
import { textOf } from './describe-error.ts'
import type { JobLog } from './handler-api.ts'
import { MAX_LINES_PER_ATTEMPT, MAX_MESSAGE_CHARACTERS } from './log-limits.ts'
import { toLogText, toStorableJson } from './storable-json.ts'

export type LogWriter = {
  /** The log of one attempt. Lines written after its lease ended are dropped by the database. */
  logFor(lease: LeaseKey): JobLog
  /** Resolves when all lines written so far are stored; rejects if the database does not answer. */
  flush(): Promise<void>
}

const FLUSH_MS = 250
/** While the database is away, lines wait here; beyond this many the oldest go. */
const MAX_BUFFERED_LINES = 50_000

/** Collects the lines of all running jobs and stores them together, a few times a second. */
export const createLogWriter = (options: {
  run: Run
  /** What a handler says is read by tenants: it must not give our secrets away. */
  redactor: Redactor
  onError: (error: Error) => void
}): LogWriter => {
  let buffer: NewLogLine[] = []
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const write = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (buffer.length === 0) return
    const lines = buffer
    buffer = []
    try {
      await options.run(appendJobLogs(toStorableJson(lines)))
    } catch (error) {
      options.onError(error as Error)
      if (isRefused(error)) return
      buffer = [...lines, ...buffer].slice(-MAX_BUFFERED_LINES)
      writeSoon()
      throw error
    }
  }

  const flush = (): Promise<void> => {
    writing = writing.catch(() => {}).then(write)
    return writing
  }

  const writeSoon = (): void => {
    timer ??= setTimeout(() => flush().catch(() => {}), FLUSH_MS)
  }

  const append = (lease: LeaseKey, level: LogLevel, message: string): void => {
    const { job_id, token } = lease
    // Cut first: what a handler says may be megabytes, and is searched for secrets.
    const safe = options.redactor.text(textOf(message).slice(0, 2 * MAX_MESSAGE_CHARACTERS))
    const text = toLogText(safe, MAX_MESSAGE_CHARACTERS)
    buffer.push({ job_id, token, at: new Date().toISOString(), level, message: text })
    writeSoon()
  }

  return {
    flush,
    logFor: (lease) => {
      let lines = 0
      const at = (level: LogLevel) => (message: string) => {
        lines++
        if (lines < MAX_LINES_PER_ATTEMPT) append(lease, level, message)
        if (lines === MAX_LINES_PER_ATTEMPT)
          append(lease, 'warn', 'The log is full: further lines are dropped.')
      }
      return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
    },
  }
}
