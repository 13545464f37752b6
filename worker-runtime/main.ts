import { parseArgs } from 'node:util'
import { CALLBACK_TYPE } from '../db/rules/callbacks.ts'
import { createRedactor } from '../functions/redaction.ts'
import { runCommand } from './command.ts'
import { type Config, ConfigError, parseConfig, secretsOf } from './config.ts'
import type { AnyJobHandler } from './handler-api.ts'
import { createHandlers } from './handlers/index.ts'
import type { WorkerOrder, WorkerReady } from './local/worker-process.ts'
import { createLogger } from './logger.ts'
import { startTracing } from './tracing/start-tracing.ts'
import { createWorker, type Worker } from './worker.ts'

/** A worker pod. SIGTERM and SIGINT drain it; a second signal ends it at once. */
const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { ip: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const config = requireDatabase(parseConfig(process.env))
  const redactor = createRedactor(secretsOf(config))
  const logger = createLogger({ level: config.SMARTQUEUE_LOG_LEVEL, redactor })
  const handlers = createHandlers({ shellAllow: config.SMARTQUEUE_SHELL_ALLOW })
  const tracing = await startTracing(config, logger)
  const metrics = await openMetrics(config, handlers, values.ip)
  const worker = createWorker({ config, handlers, logger, tracing, metrics: metrics?.counts })
  const status = metrics?.serve(worker, (error) => logger.error('status server failed', { error }))

  const { promise: stopped, resolve: hasStopped } = Promise.withResolvers<number>()
  let signalled = false
  const stop = async (): Promise<void> => {
    if (signalled) process.exit(1)
    signalled = true
    await worker.stop().then(close)
  }
  const close = async (): Promise<void> => {
    await tracing?.stop()
    await status?.stop()
    hasStopped(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, stop)
  // Started by the local runner: if that vanishes, so does its worker. And it says when there are more workers than needed.
  process.on('disconnect', stop)
  process.on('message', (message: WorkerOrder) => {
    if (message.kind === 'retire') void worker.retire().then(close)
  })

  // Before the worker: so that a probe can tell that it starts.
  await status?.start()
  await worker.start()
  process.send?.({ kind: 'ready', workerId: worker.id, types: worker.types } satisfies WorkerReady)
  return stopped
}

/** Loaded only where it is asked for. */
const openMetrics = async (config: Config, handlers: readonly AnyJobHandler[], ip: string | undefined) => {
  const { SMARTQUEUE_METRICS_PORT: port } = config
  if (port === undefined) return undefined
  const { createWorkerMetrics } = await import('./http/worker-metrics.ts')
  const { createWorkerStatus } = await import('./http/worker-status.ts')
  const counts = createWorkerMetrics([...handlers.map(({ type }) => type), CALLBACK_TYPE])
  return {
    counts,
    serve: (worker: Worker, onError: (error: Error) => void) =>
      createWorkerStatus({ port, ip, metrics: counts, condition: worker.condition, onError }),
  }
}

const requireDatabase = (config: Config): Config & { DATABASE_URL: string } => {
  const { DATABASE_URL } = config
  if (!DATABASE_URL) throw new ConfigError('DATABASE_URL: a worker needs the Postgres that it works for')
  return { ...config, DATABASE_URL }
}

const HELP = `Usage: npm run worker [-- --ip ADDRESS]

Claims jobs from DATABASE_URL and runs them until it gets SIGTERM. The settings are in README.md.

  --ip ADDRESS     where to answer on SMARTQUEUE_METRICS_PORT   (all addresses)`

runCommand('The worker could not start', main)
