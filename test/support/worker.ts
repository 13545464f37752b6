import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { parseConfig } from '../../worker-runtime/config.ts'
import type { AnyJobHandler, JobContext, JobHandler } from '../../worker-runtime/handler-api.ts'
import type { WorkerMetrics } from '../../worker-runtime/http/worker-metrics.ts'
import { FRUGAL_MALLOC, YOUNG_GENERATION } from '../../worker-runtime/local/worker-process.ts'
import { createLogger, type Logger } from '../../worker-runtime/logger.ts'
import type { JobTracing } from '../../worker-runtime/tracing/job-tracing.ts'
import { createWorker, type Worker } from '../../worker-runtime/worker.ts'
import { asLogin, type TestDatabase } from './database.ts'
import { waitFor } from './wait-for.ts'

export type LogLine = Record<string, unknown>

export type TestWorker = {
  readonly id: string
  readonly pid: number
  /** The log so far, one parsed line each. */
  readonly log: LogLine[]
  /** Ends it as a pod ends: drain, then exit. Answers the exit code. */
  stop(): Promise<number | null>
  /** Ends it as a crash does: at once, with nothing put in order. */
  kill(): Promise<void>
  /** It stands still, with all its connections open, until it is told to go on. */
  freeze(): void
  unfreeze(): void
  /** Resolves when it has ended by itself. */
  readonly exited: Promise<unknown>
}

const MAIN = fileURLToPath(new URL('../../worker-runtime/main.ts', import.meta.url))
/** A worker with a handler that ends its process. */
export const CRASHING = fileURLToPath(new URL('./crashing-worker.ts', import.meta.url))

/** A real worker process that may reach servers on this machine. Resolves when it claims. */
export const startWorker = async (
  databaseUrl: string,
  env: Record<string, string> = {},
  entry = MAIN,
): Promise<TestWorker> => {
  const child = fork(entry, {
    execArgv: [...process.execArgv, YOUNG_GENERATION],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      ...FRUGAL_MALLOC,
      ...process.env,
      DATABASE_URL: asLogin(databaseUrl, 'workers'),
      SMARTQUEUE_HTTP_ALLOW: '127.0.0.1',
      SMARTQUEUE_LOG_LEVEL: 'debug',
      ...env,
    },
  })
  const log = followLog(child)
  const exited = once(child, 'exit')
  const [message] = await Promise.race([once(child, 'message'), exited.then(() => [])])
  if (!message) throw new Error('The worker did not start')
  return {
    id: (message as { workerId: string }).workerId,
    pid: Number(child.pid),
    log,
    exited,
    stop: async () => {
      child.kill('SIGTERM')
      const [code] = await exited
      return code
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
    freeze: () => void child.kill('SIGSTOP'),
    unfreeze: () => void child.kill('SIGCONT'),
  }
}

const followLog = (child: ChildProcess): LogLine[] => {
  const lines: LogLine[] = []
  if (child.stdout)
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  return lines
}

/** A logger that keeps its lines. */
export const keepLog = (): { log: LogLine[]; logger: Logger } => {
  const log: LogLine[] = []
  const write = (line: string) => void log.push(JSON.parse(line))
  return { log, logger: createLogger({ level: 'debug', pretty: false, write }) }
}

/** A worker in this process, with handlers of the test's own. Not started yet. */
export const prepareWorker = (
  databaseUrl: string,
  handlers: readonly AnyJobHandler[],
  env: Record<string, string> = {},
  observers: { tracing?: JobTracing | undefined; metrics?: WorkerMetrics | undefined } = {},
): Worker & { readonly log: LogLine[] } => {
  const { log, logger } = keepLog()
  const config = { ...parseConfig(env), DATABASE_URL: asLogin(databaseUrl, 'workers') }
  return { ...createWorker({ config, handlers, logger, ...observers }), log }
}

/** A worker that has just begun to listen looks at everything once: tests of what it hears begin after that. */
export const untilListening = (database: TestDatabase, worker: { id: string }): Promise<unknown> =>
  waitFor(`${worker.id} to listen`, async () => {
    const text = `select from pg_stat_activity where application_name = $1 and query like 'listen%' and state = 'idle'`
    return (await database.sql(text, [`smartqueue ${worker.id} listener`])).length > 0
  })

/** A handler for jobs of type `test`, unless told otherwise. */
export const handle = (
  run: (payload: Record<string, unknown>, context: JobContext) => unknown,
  type = 'test',
): JobHandler => ({
  type,
  schema: z.record(z.string(), z.unknown()),
  run: async (payload, context) => run(payload as Record<string, unknown>, context),
})
