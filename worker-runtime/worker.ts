import { hostname, totalmem } from 'node:os'
import { registerJobTypes } from '../db/queries/job-types.ts'
import {
  JOBS_CANCELLED,
  JOBS_READY,
  QUEUE_PAUSED,
  WORKER_IDLE,
  WORKER_ISOLATES,
} from '../db/queries/notifications.ts'
import type { EndState } from '../db/queue/exchange.ts'
import { createRedactor } from '../functions/redaction.ts'
import { createCallbackJob } from './callbacks/handler.ts'
import { createCapacity } from './capacity.ts'
import { createClaimPlanner } from './claim-planner.ts'
import { type Config, secretsOf } from './config.ts'
import { createJobSessions } from './connections/job-sessions.ts'
import { createDatabase, RELAXED_COMMIT } from './database.ts'
import { createDatabaseWatch } from './database-watch.ts'
import { createGuardedFetch } from './egress/guarded-fetch.ts'
import { createExchanger } from './exchanger.ts'
import { createFailureReports } from './failure-reports.ts'
import type { AnyJobHandler } from './handler-api.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createHeldJobs, describe, type HeldJob, type HeldJobs } from './held-jobs.ts'
import type { WorkerCondition, WorkerMetrics } from './http/worker-metrics.ts'
import { createIsolation } from './isolation.ts'
import { createLeading } from './leading.ts'
import { createLeaseKeeper } from './lease-keeper.ts'
import { createListener } from './listener.ts'
import { createLogWriter } from './log-writer.ts'
import type { Logger } from './logger.ts'
import { createOutcomeQueue } from './outcome-queue.ts'
import { describePayload } from './payload-schema.ts'
import { createProgressWriter } from './progress-writer.ts'
import { requireCurrentSchema } from './require-current-schema.ts'
import { requireRowSecurity } from './require-row-level-security.ts'
import { createSlowWatch } from './slow-watch.ts'
import { createThreadPool } from './threads/pool.ts'
import type { JobTracing } from './tracing/job-tracing.ts'
import { createWorkSharing } from './work-sharing.ts'

export type Worker = {
  readonly id: string
  /** That can be submitted. */
  readonly types: string[]
  start(): Promise<void>
  condition(): WorkerCondition
  /** Stops claiming, lets running jobs finish for the drain time, gives the rest back. Twice is safe. */
  stop(): Promise<void>
  /** The same without a limit to the time: it is not needed any more. A stop meanwhile sets the limit after all. */
  retire(): Promise<void>
}

/** Enough for log lines, progress, a renewal, a heartbeat and a leader's duties side by side. */
const MAX_CONNECTIONS = 4

/** Steps come every few seconds, also without the database, and all that one waits for gives up much sooner. */
const STUCK_MS = 120_000

/** Puts the parts of a worker together. Each of them knows only what it is handed here. */
export const createWorker = (options: {
  config: Config & { DATABASE_URL: string }
  handlers: readonly AnyJobHandler[]
  logger: Logger
  /** Whoever has started it stops it, after the worker. */
  tracing?: JobTracing | undefined
  /** Where what happens is counted. */
  metrics?: WorkerMetrics | undefined
  /** Another thread to learn in. */
  learningThread?: URL
}): Worker => {
  const { config, logger, tracing, metrics } = options
  // Opaque, because organisations see it on their jobs. The registry and the log map it to a host.
  const id = `worker-${crypto.randomUUID().replaceAll('-', '').slice(0, 12)}`
  const url = config.DATABASE_URL
  const { SMARTQUEUE_HTTP_ALLOW: allow, SMARTQUEUE_CONNECTIONS: connections = {} } = config
  const threads = createThreadPool({ allow, connections })
  const failed = createFailureReports({ logger, now: () => performance.now() })
  const watch = createDatabaseWatch(() => performance.now())
  let processed = 0
  let started = false

  const connect = (maxConnections: number, settings: Record<string, string> = {}) =>
    createDatabase({
      url,
      applicationName: `smartqueue ${id}`,
      maxConnections,
      settings,
      onError: failed('idle connection'),
    })
  const database = connect(MAX_CONNECTIONS)
  const exchanging = connect(1)
  const unwatched = connect(MAX_CONNECTIONS, RELAXED_COMMIT)
  const upkeep = { ...unwatched, run: watch.watch(unwatched.run) }
  const { run } = database

  const internal = createCallbackJob(run)
  if (options.handlers.some(({ type }) => type === internal.type)) throw reservedType(internal.type)
  const handlers = new Map(
    [...options.handlers.map(threads.toJobHandler), internal].map((handler) => [handler.type, handler]),
  )
  const types = [...handlers.keys()]
  const egress = createGuardedFetch({ allow })
  const redactor = createRedactor(secretsOf(config))
  const logs = createLogWriter({ run, redactor, onError: failed('log writing') })
  const progress = createProgressWriter({ run, onError: failed('progress writing') })
  const slots = config.SMARTQUEUE_WORKER_SLOTS
  const capacity = createCapacity({
    slots,
    cpuUnits: config.SMARTQUEUE_WORKER_CPU_UNITS ?? slots,
    memoryMb: config.SMARTQUEUE_WORKER_MEMORY_MB ?? machineMemoryMb(),
  })
  const jobs: HeldJobs = createHeldJobs({
    handlers,
    capacity,
    tools: {
      logFor: logs.logFor,
      reportProgress: progress.report,
      saveCheckpoint: progress.checkpoint,
      fetch: egress.fetch,
      sessionsFor: ({ job_id: jobId, org_id: orgId }, signal) =>
        createJobSessions({ connections, jobId, orgId, signal }),
      autoTimeout: config.SMARTQUEUE_AUTO_TIMEOUT,
      tracing,
      onError: failed('execution'),
    },
    logger,
    onEnded: (held) => {
      planner.attemptEnded(held.ranMs, held.job.turn)
      metrics?.attemptEnded(held.job.type, held.ranMs)
      exchanger.record(held)
    },
    onFreed: () => exchanger.wake(),
    onLeft: ({ type, turn }, how, ranMs) => {
      planner.left(ranMs, turn)
      metrics?.jobLeft(type, how)
    },
  })
  const planner = createClaimPlanner({
    types,
    policy: config.SMARTQUEUE_POLICY,
    capacity,
    jobs: () => jobs,
    now: () => performance.now(),
  })
  const outcomes = createOutcomeQueue({
    jobs,
    logger,
    onRecorded: (held, state) => {
      processed++
      metrics?.jobLeft(held.job.type, OUTCOMES[state])
      logRecorded(logger, held, state)
    },
    onLost: ({ type }) => metrics?.jobLeft(type, 'lost'),
    onError: failed('exchange'),
  })
  const isolation = createIsolation({
    run: exchanging.run,
    workerId: id,
    types,
    capacity,
    now: () => performance.now(),
  })
  const exchanger = createExchanger({
    workerId: id,
    run: exchanging.run,
    jobs,
    planner,
    outcomes,
    isolation,
    beforeEnds: async () => {
      await Promise.all([logs.flush(), progress.flush()])
    },
    onExchanged: (report, tookMs) => {
      planner.observe(report)
      sharing.observe(report)
      if (report.claim.limit > 0) metrics?.claimed(report.claimed.length, tookMs)
    },
    tracing,
    onError: failed('exchange'),
  })
  const sharing = createWorkSharing({
    run,
    workerId: id,
    jobs,
    planner,
    capacity,
    wake: exchanger.wake,
    onError: failed('work sharing'),
  })
  const leaseKeeper = createLeaseKeeper({
    run: upkeep.run,
    held: () => jobs.held().map(({ job: { job_id, token } }) => ({ job_id, token })),
    leases: jobs.leases,
    onLost: jobs.lose,
    onError: failed('lease renewal'),
  })
  const slowWatch = createSlowWatch({ run: upkeep.run, jobs, logger, onError: failed('watch for slow jobs') })
  const listener = createListener({
    url,
    applicationName: `smartqueue ${id} listener`,
    onNotification: (channel, payload) => {
      if (channel === JOBS_READY && (payload === '' || handlers.has(payload))) sharing.jobsAreReady()
      if (channel === JOBS_CANCELLED && payload === id) leaseKeeper.checkCancelled()
      if (channel === QUEUE_PAUSED) sharing.queueIsPaused(payload)
      if (channel === WORKER_IDLE && payload !== id) sharing.workerIsIdle()
      if (channel === WORKER_ISOLATES && payload === id) {
        isolation.begin()
        exchanger.wake()
      }
    },
    onConnected: () => {
      exchanger.wake()
      leaseKeeper.checkCancelled()
    },
    onError: failed('listener'),
  })
  const heartbeat = createHeartbeat({
    run: upkeep.run,
    workerId: id,
    hostname: hostname(),
    types,
    slots: capacity.slots,
    cpuUnits: capacity.cpuUnits,
    memoryMb: capacity.memoryMb,
    running: jobs.running,
    processed: () => processed,
    onError: failed('heartbeat'),
  })
  const leader = createLeading({
    workerId: id,
    url,
    config,
    upkeep,
    connect,
    logger,
    failed,
    learningThread: options.learningThread,
  })

  const start = async (): Promise<void> => {
    await requireCurrentSchema(run)
    await requireRowSecurity(run)
    // Not our own: what is not announced cannot be submitted.
    const described = options.handlers.map(({ type, schema }) => ({
      type,
      payload_schema: describePayload(schema),
    }))
    await run(registerJobTypes(described))
    await exchanger.prepare()
    await heartbeat.start()
    for (const part of [exchanger, listener, leaseKeeper, slowWatch, leader]) part.start()
    started = true
    const { cpuUnits, memoryMb } = capacity
    logger.info('worker started', {
      worker_id: id,
      hostname: hostname(),
      pid: process.pid,
      types,
      slots,
      cpu_units: cpuUnits,
      memory_mb: memoryMb,
    })
  }

  const { promise: patienceEnds, resolve: endPatience } = Promise.withResolvers<void>()
  let drainTimer: NodeJS.Timeout | undefined

  const leave = async (): Promise<void> => {
    heartbeat.drain()
    sharing.stop()
    await exchanger.claimNoMore()
    if (jobs.running() > 0) logger.info('draining', { running: jobs.running() })
    const unstarted = jobs.takeUnstarted(jobs.unstarted())
    const [unfinished] = await Promise.all([
      jobs.drain(patienceEnds),
      sharing.giveBack(unstarted, 'shutdown'),
      leader.stop(),
    ])
    await exchanger.stop()
    await listener.stop()
    await Promise.all([logs.flush(), progress.flush()]).catch(() => {})
    await sharing.giveBack(unfinished, 'shutdown')
    const givenBack = unstarted.length + unfinished.length
    if (givenBack > 0) logger.info('unfinished jobs given back', { jobs: givenBack })
    await Promise.all([leaseKeeper.stop(), slowWatch.stop()])
    await heartbeat.stop()
    const databases = [database, exchanging, upkeep]
    await Promise.all([egress, threads, ...databases].map((part) => part.close()))
    clearTimeout(drainTimer)
    logger.info('worker stopped', { worker_id: id })
  }

  let leaving: Promise<void> | undefined
  const retire = (): Promise<void> => {
    leaving ??= leave()
    return leaving
  }

  return {
    id,
    types: options.handlers.map(({ type }) => type),
    start,
    condition: () => ({
      started,
      draining: leaving !== undefined,
      databaseUp: watch.isUp(),
      stuck: performance.now() - (exchanger.turnedAtMs() ?? Infinity) > STUCK_MS,
      inFlight: jobs.running(),
      slots,
      term: leader.term(),
    }),
    stop: () => {
      drainTimer ??= setTimeout(endPatience, config.SMARTQUEUE_DRAIN_SECONDS * 1000)
      return retire()
    },
    retire,
  }
}

/** What the state that an attempt puts its job in says about the attempt. */
const OUTCOMES = {
  completed: 'completed',
  pending: 'snoozed',
  failed: 'failed',
  retrying: 'retried',
} as const

const logRecorded = (logger: Logger, { job, outcome }: HeldJob, state: NonNullable<EndState>): void => {
  if (outcome?.kind !== 'failed') {
    logger.debug(state === 'completed' ? 'job completed' : 'job snoozed', describe(job))
    return
  }
  const { code, message } = outcome.error
  logger.warn(`job ${state}`, { ...describe(job), error: code, reason: message })
}

const reservedType = (type: string): Error =>
  new Error(`"${type}" is a type of SmartQueue's own: give the handler another name.`)

/** In a container that limits it, its limit. */
const machineMemoryMb = (): number => {
  const bytes = Math.min(process.constrainedMemory() || totalmem(), totalmem())
  return Math.floor(bytes / 1024 / 1024)
}
