import { parseArgs } from 'node:util'
import { createRedactor } from '../../functions/redaction.ts'
import { runCommand } from '../command.ts'
import { type Config, ConfigError, parseConfig, secretsOf } from '../config.ts'
import { createLogger, type Logger } from '../logger.ts'
import { type ApiClient, createApiClient } from './api-client.ts'
import { apiServerOf, readNamespace, SERVICE_ACCOUNT_FOLDER } from './service-account.ts'

export type ClusterConfig = Config & { DATABASE_URL: string }

/** What a program in the cluster is made of. */
export type ClusterParts = {
  config: ClusterConfig
  api: ApiClient
  /** That of its own pod. */
  namespace: string
  logger: Logger
}

const METRICS_PORT = 9464

/** A worker need not have one; here there would be no probes without. */
export const metricsPortOf = (config: Config): number => config.SMARTQUEUE_METRICS_PORT ?? METRICS_PORT

/** Runs a program of the cluster until SIGTERM or SIGINT; a second signal ends it at once. */
export const runClusterCommand = (command: {
  name: string
  help: string
  create: (parts: ClusterParts) => { start(): Promise<void>; stop(): Promise<void> }
}): void => {
  const main = async (): Promise<number> => {
    const { values } = parseArgs({
      options: {
        'service-account': { type: 'string', default: SERVICE_ACCOUNT_FOLDER },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) {
      console.log(command.help)
      return 0
    }
    const parts = await partsOf(command.name, values['service-account'])
    const program = command.create(parts)
    const stopped = untilSignalled()
    await program.start()
    await stopped
    await program.stop()
    await parts.api.close()
    return 0
  }
  runCommand(`The ${command.name} could not start`, main)
}

const partsOf = async (name: string, serviceAccountFolder: string): Promise<ClusterParts> => {
  const config = requireDatabase(name, parseConfig(process.env))
  const logger = createLogger({
    level: config.SMARTQUEUE_LOG_LEVEL,
    redactor: createRedactor(secretsOf(config)),
  })
  const api = createApiClient({ server: apiServerOf(process.env), serviceAccountFolder })
  const namespace = await readNamespace(serviceAccountFolder)
  return { config, api, namespace, logger }
}

const requireDatabase = (name: string, config: Config): ClusterConfig => {
  const { DATABASE_URL } = config
  if (!DATABASE_URL)
    throw new ConfigError(
      `DATABASE_URL: the ${name} needs the Postgres of the workers, with a login for functions`,
    )
  return { ...config, DATABASE_URL }
}

const untilSignalled = (): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let signalled = false
  const stop = (): void => {
    if (signalled) process.exit(1)
    signalled = true
    resolve()
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, stop)
  return promise
}
