import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { createProcessRegistry } from './process-metrics.ts'

/** How a job left this worker's hands. */
export const DEPARTURES = [
  'completed',
  'failed',
  'retried',
  'cancelled',
  'snoozed',
  'lost',
  'given_back',
] as const
export type DepartureOutcome = (typeof DEPARTURES)[number]

/** What parts of a worker tell, as it happens: tens of thousands of times a second. */
export type WorkerMetrics = {
  jobLeft(type: string, outcome: DepartureOutcome): void
  attemptEnded(type: string, ranMs: number): void
  /** Statements that asked for jobs: how many they brought, after how long. */
  claimed(jobs: number, tookMs: number): void
  /** Whom to ask for what is not counted but looked at. */
  of(condition: () => WorkerCondition): void
  readonly registry: Registry
}

/** How a worker is at the moment. */
export type WorkerCondition = {
  readonly started: boolean
  readonly draining: boolean
  readonly databaseUp: boolean
  /** Its claims have come to a standstill from which they do not recover. */
  readonly stuck: boolean
  readonly inFlight: number
  readonly slots: number
  /** While it leads. */
  readonly term: string | undefined
}

/** From what takes no time to what takes an hour. */
const RUN_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
]
const CLAIM_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const BATCH_SIZES = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/**
 * Metrics of one worker. `type` has as many values as there are handlers. What happens to each job is counted in plain
 * numbers, and put into metrics when somebody looks: a counter with labels takes longer than all else about its count.
 */
export const createWorkerMetrics = (types: readonly string[]): WorkerMetrics => {
  const registry = createProcessRegistry()
  const registers = [registry]

  const left = new Map(types.map((type) => [type, noDepartures()]))
  const execution = new Histogram({
    name: 'smartqueue_worker_execution_seconds',
    help: 'How long attempts ran on this worker, however they ended.',
    labelNames: ['type'],
    buckets: RUN_SECONDS,
    registers,
  })
  const runs = new Map(types.map((type) => [type, execution.labels(type)]))
  for (const type of types) execution.zero({ type })
  const batch = new Histogram({
    name: 'smartqueue_worker_claim_batch_size',
    help: 'Jobs that a claim of this worker brought.',
    buckets: BATCH_SIZES,
    registers,
  })
  const latency = new Histogram({
    name: 'smartqueue_worker_claim_seconds',
    help: 'How long claims of this worker took, with the outcomes that went along.',
    buckets: CLAIM_SECONDS,
    registers,
  })
  new Counter({
    name: 'smartqueue_worker_jobs_total',
    help: "Jobs that left this worker's hands, by what became of them there.",
    labelNames: ['type', 'outcome'],
    registers,
    collect() {
      this.reset()
      for (const [type, counts] of left)
        for (const outcome of DEPARTURES) this.inc({ type, outcome }, counts[outcome])
    },
  })
  new Counter({
    name: 'smartqueue_worker_lease_losses_total',
    help: 'Jobs whose lease this worker lost.',
    registers,
    collect() {
      this.reset()
      for (const { lost } of left.values()) this.inc(lost)
    },
  })

  return {
    jobLeft: (type, outcome) => {
      const counts = left.get(type)
      if (counts) counts[outcome]++
    },
    attemptEnded: (type, ranMs) => runs.get(type)?.observe(ranMs / 1000),
    claimed: (jobs, tookMs) => {
      batch.observe(jobs)
      latency.observe(tookMs / 1000)
    },
    of: (condition) => addGauges(registry, condition),
    registry,
  }
}

const noDepartures = (): Record<DepartureOutcome, number> => ({
  completed: 0,
  failed: 0,
  retried: 0,
  cancelled: 0,
  snoozed: 0,
  lost: 0,
  given_back: 0,
})

const addGauges = (registry: Registry, condition: () => WorkerCondition): void => {
  const gauge = (name: string, help: string, read: (now: WorkerCondition) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read(condition()))
      },
    })
  gauge('smartqueue_worker_in_flight', 'Jobs that run on this worker.', (now) => now.inFlight)
  gauge('smartqueue_worker_slots', 'Jobs that can run on this worker at a time.', (now) => now.slots)
  gauge('smartqueue_worker_leader', 'Whether this worker leads.', (now) => Number(now.term !== undefined))
  gauge('smartqueue_worker_leader_term', 'The term of this worker while it leads, else 0.', (now) =>
    Number(now.term ?? 0),
  )
  gauge('smartqueue_worker_database_up', 'Whether the database has answered this worker lately.', (now) =>
    Number(now.databaseUp),
  )
  gauge('smartqueue_worker_draining', 'Whether this worker takes no more jobs, because it stops.', (now) =>
    Number(now.draining),
  )
}
