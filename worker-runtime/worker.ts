import { hostname } from 'node:os'
import { registerJobTypes } from '../db/queries/job-types.ts'
import { SCHEMA_VERSION, schemaVersion, UNDEFINED_TABLE } from '../db/queries/schema-version.ts'
import type { Run } from '../db/query.ts'
import { createClaimer } from './claimer.ts'
import { UsageError } from './command.ts'
import type { Config } from './config.ts'
import { createDatabase } from './database.ts'
import { createGuardedFetch } from './egress/guarded-fetch.ts'
import type { JobHandler } from './handler-api.ts'
import { createLeaseKeeper } from './lease-keeper.ts'
import { createListener } from './listener.ts'
import { createLogWriter } from './log-writer.ts'
import type { Logger } from './logger.ts'
import { describePayload } from './payload-schema.ts'
import { createRecorder } from './recorder.ts'
import { createRunningJobs } from './running-jobs.ts'
import { createUpkeep } from './upkeep.ts'

export type Worker = {
  readonly id: string
  readonly types: string[]
  start(): Promise<void>
  /** Stops claiming, lets running jobs finish for the drain time, gives the rest back. Twice is safe. */
  stop(): Promise<void>
}

/** Enough for a claim, a record, a renewal and upkeep at the same time. */
const MAX_CONNECTIONS = 4

/** Puts the parts of a worker together. Each of them knows only what it is handed here. */
export const createWorker = (options: {
  config: Config & { DATABASE_URL: string }
  handlers: readonly JobHandler[]
  logger: Logger
}): Worker => {
  const { config, logger } = options
  const id = `${hostname()}-${process.pid}-${crypto.randomUUID().slice(0, 4)}`
  const url = config.DATABASE_URL
  const handlers = new Map(options.handlers.map((handler) => [handler.type, handler]))
  const types = [...handlers.keys()]
  const failed = (part: string) => (error: Error) => logger.error(`${part} failed`, { error })

  const database = createDatabase({
    url,
    applicationName: `smartqueue ${id}`,
    maxConnections: MAX_CONNECTIONS,
    onError: failed('idle connection'),
  })
  const { run } = database
  const egress = createGuardedFetch({ allow: config.SMARTQUEUE_HTTP_ALLOW })
  const logs = createLogWriter({ run, onError: failed('log writing') })
  const recorder = createRecorder({ run, logs, onError: failed('recording') })
  const jobs = createRunningJobs({
    run,
    handlers,
    logs,
    recorder,
    fetch: egress.fetch,
    logger,
    onSettled: () => claimer.slotFreed(),
  })
  const claimer = createClaimer({
    run,
    workerId: id,
    types,
    freeSlots: () => config.SMARTQUEUE_WORKER_SLOTS - jobs.count(),
    onClaimed: jobs.begin,
    onError: failed('claim'),
  })
  const listener = createListener({
    url,
    applicationName: `smartqueue ${id} listener`,
    onReady: (type) => {
      if (handlers.has(type)) claimer.notify()
    },
    onConnected: claimer.notify,
    onError: failed('listener'),
  })
  const leaseKeeper = createLeaseKeeper({
    run,
    held: jobs.leases,
    onLost: jobs.loseLease,
    onError: failed('lease renewal'),
  })
  const upkeep = createUpkeep({ run, logger, onError: failed('upkeep') })

  const start = async (): Promise<void> => {
    await requireCurrentSchema(run)
    const described = options.handlers.map(({ type, schema }) => ({
      type,
      payload_schema: describePayload(schema),
    }))
    await run(registerJobTypes(described))
    for (const part of [claimer, listener, leaseKeeper, upkeep]) part.start()
    logger.info('worker started', { worker_id: id, types, slots: config.SMARTQUEUE_WORKER_SLOTS })
  }

  const stop = async (): Promise<void> => {
    await Promise.all([claimer.stop(), listener.stop(), upkeep.stop()])
    if (jobs.count() > 0) logger.info('draining', { running: jobs.count() })
    await jobs.drain(config.SMARTQUEUE_DRAIN_SECONDS)
    await leaseKeeper.stop()
    await Promise.all([egress.close(), database.close()])
    logger.info('worker stopped', { worker_id: id })
  }
  let stopping: Promise<void> | undefined

  return {
    id,
    types,
    start,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

const requireCurrentSchema = async (run: Run): Promise<void> => {
  const [schema] = await run(schemaVersion()).catch((error: { code?: string }) => {
    if (error.code === UNDEFINED_TABLE) return []
    throw error
  })
  const version = schema?.version ?? 0
  if (version >= SCHEMA_VERSION) return
  throw new UsageError(
    `The schema is at version ${version}, ${SCHEMA_VERSION} is needed. Run npm run migrate.`,
  )
}
