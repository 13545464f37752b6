import type { LogLevel } from '../../db/rules/log-levels.ts'
import { safely, textOf } from '../describe-error.ts'
import type { JobContext, JobLog } from '../handler-api.ts'
import { MAX_LINES_PER_ATTEMPT, MAX_MESSAGE_CHARACTERS } from '../log-limits.ts'
import type { FromThread } from './messages.ts'

/**
 * What a handler reports, held down to what the worker can use. In the worker's own thread a flood of lines slows down
 * whoever writes it. From another it would be the worker that is kept busy reading, heartbeats and all.
 */
type Say = (message: FromThread) => void

const PROGRESS_MS = 100

export const quietLog = (say: Say): JobLog => {
  let lines = 0
  const at = (level: LogLevel) => (message: string) => {
    // The last one is for the line that says that the log is full.
    if (++lines > MAX_LINES_PER_ATTEMPT) return
    say({ kind: 'log', level, message: textOf(message).slice(0, 2 * MAX_MESSAGE_CHARACTERS) })
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** The newest, ten times a second. */
export const quietProgress = (say: Say): { report: JobContext['progress']; flush(): void } => {
  let unsaid: FromThread | undefined
  let saidAtMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (!unsaid) return
    say(unsaid)
    unsaid = undefined
    saidAtMs = performance.now()
  }

  return {
    flush,
    report: (fraction, note) => {
      unsaid = {
        kind: 'progress',
        fraction: safely(() => Number(fraction), 0),
        note: note === undefined ? note : textOf(note),
      }
      // By the clock too: in a computation no timer goes off.
      if (performance.now() - saidAtMs >= PROGRESS_MS) flush()
      else timer ??= setTimeout(flush, PROGRESS_MS)
    },
  }
}
