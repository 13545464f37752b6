import { parseArgs } from 'node:util'
import { type Config, ConfigError, parseConfig } from './config.ts'
import { describeError } from './describe-error.ts'
import { handlers } from './handlers/index.ts'
import { createLogger } from './logger.ts'
import { createWorker } from './worker.ts'

/** A worker pod. SIGTERM and SIGINT drain it; a second signal ends it at once. */
const main = async (): Promise<void> => {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h' } } })
  if (values.help) return void console.log(HELP)
  const config = requireDatabase(parseConfig(process.env))
  const logger = createLogger({ level: config.SMARTQUEUE_LOG_LEVEL })
  const worker = createWorker({ config, handlers, logger })

  let signalled = false
  const stop = async (): Promise<void> => {
    if (signalled) process.exit(1)
    signalled = true
    await worker.stop()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, stop)
  // Started by the local runner: if that vanishes, so does its worker.
  process.on('disconnect', stop)

  await worker.start()
  process.send?.({ kind: 'ready', workerId: worker.id, types: worker.types })
}

const requireDatabase = (config: Config): Config & { DATABASE_URL: string } => {
  const { DATABASE_URL } = config
  if (!DATABASE_URL) throw new ConfigError('DATABASE_URL: a worker needs the Postgres that it works for')
  return { ...config, DATABASE_URL }
}

const HELP = `Usage: npm run worker

Claims jobs from DATABASE_URL and runs them until it gets SIGTERM. The settings are in README.md.`

main().catch((error: Error) => {
  console.error(
    error instanceof ConfigError ? error.message : `The worker could not start: ${describeError(error)}`,
  )
  process.exit(1)
})
