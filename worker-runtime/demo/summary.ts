import { measureAccuracy, median, phasesOf, runtimeMs } from './accuracy.ts'
import { kindOf, type TenantName } from './kinds.ts'
import type { SeenJob } from './observer.ts'
import { type Snapshot, sumOf, type TenantCount } from './snapshot.ts'
import type { Promises, SubmissionEnd } from './submitter.ts'

export type SeriesPhase = {
  jobs: number
  predicted_ms: number | null
  actual_ms: number | null
  off_by: number | null
}

export type SeriesSummary = {
  tenant: TenantName
  name: string
  type: string
  /** How its runtimes vary. */
  runtimes: string
  completed: number
  early: SeriesPhase
  late: SeriesPhase
}

export type DeadLetters = { tenant: TenantName; count: number; code: string; message: string }

/** What the run has shown: one object, for programs. Medians are in milliseconds. */
export type Summary = {
  url: string
  seconds: number
  ended: SubmissionEnd
  submitted: number
  completed: number
  failed: number
  cancelled: number
  open: number
  replayed: number
  refused: number
  last_refusal: string | null
  tenants: TenantCount[]
  /** What is compared: this long from the beginning, a third of that, and as long before the end. */
  phase_seconds: number
  prediction: Pick<Snapshot, 'first' | 'early' | 'late'>
  series: SeriesSummary[]
  eta: Snapshot['eta']
  deadlines: { jobs: number; at_risk: number; met: number; missed: number }
  pipelines: { submitted: number; completed: number }
  deliveries: Record<string, number>
  dead_letters: DeadLetters[]
  model: Snapshot['model']
}

export const summarise = (options: {
  url: string
  ended: Summary['ended']
  snapshot: Snapshot
  jobs: readonly SeenJob[]
  promises: Promises
  deadLetters: DeadLetters[]
  beganAtMs: number
  lastAtMs: number
}): Summary => {
  const { snapshot, jobs, promises } = options
  const { tenants } = snapshot
  return {
    url: options.url,
    seconds: Math.round(snapshot.elapsedMs / 100) / 10,
    ended: options.ended,
    submitted: sumOf(tenants, 'submitted'),
    completed: sumOf(tenants, 'completed'),
    failed: sumOf(tenants, 'failed'),
    cancelled: sumOf(tenants, 'cancelled'),
    open: sumOf(tenants, 'open'),
    replayed: promises.replayed,
    refused: promises.refused,
    last_refusal: promises.lastRefusal,
    tenants,
    phase_seconds: Math.round(phasesOf(snapshot.durationMs).earlyUntilMs / 100) / 10,
    prediction: { first: snapshot.first, early: snapshot.early, late: snapshot.late },
    series: summariseSeries(options),
    eta: snapshot.eta,
    deadlines: countDeadlines(jobs, promises),
    pipelines: {
      submitted: promises.pipelineEnds.length,
      completed: jobs.filter(({ id, status }) => status === 'completed' && promises.pipelineEnds.includes(id))
        .length,
    },
    deliveries: promises.deliveries,
    dead_letters: options.deadLetters,
    model: snapshot.model,
  }
}

const summariseSeries = (options: {
  jobs: readonly SeenJob[]
  snapshot: Snapshot
  beganAtMs: number
  lastAtMs: number
}): SeriesSummary[] => {
  const { beganAtMs, lastAtMs } = options
  const { earlyUntilMs, lateMs } = phasesOf(options.snapshot.durationMs)
  const lateFromMs = Math.max(beganAtMs + earlyUntilMs, lastAtMs - lateMs)
  const createdMs = ({ created_at }: SeenJob): number => Date.parse(created_at)
  const series = Map.groupBy(
    options.jobs.filter((job) => runtimeMs(job) !== undefined),
    ({ tenant, type, name }) => `${tenant} ${type} ${name}`,
  )
  const summaries = [...series.values()].map((jobs): SeriesSummary => {
    const { tenant, name, type } = jobs[0] as SeenJob
    return {
      tenant,
      name,
      type,
      runtimes: kindOf(name)?.runtime.shape ?? 'computed',
      completed: jobs.length,
      early: summarisePhase(jobs.filter((job) => createdMs(job) < beganAtMs + earlyUntilMs)),
      late: summarisePhase(jobs.filter((job) => createdMs(job) >= lateFromMs)),
    }
  })
  return summaries.sort(
    (one, other) => one.tenant.localeCompare(other.tenant) || other.completed - one.completed,
  )
}

const summarisePhase = (jobs: readonly SeenJob[]): SeriesPhase => ({
  jobs: jobs.length,
  predicted_ms: median(jobs.map(({ prediction }) => prediction.p50_ms)),
  actual_ms: median(jobs.flatMap((job) => runtimeMs(job) ?? [])),
  off_by: measureAccuracy(jobs).off_by,
})

const countDeadlines = (jobs: readonly SeenJob[], { atRisk }: Promises): Summary['deadlines'] => {
  const withDeadline = jobs.filter(
    ({ deadline, status }) => deadline !== null && (status === 'completed' || status === 'failed'),
  )
  const met = withDeadline.map(
    ({ status, deadline, finished_at }) =>
      status === 'completed' && Date.parse(finished_at ?? '') <= Date.parse(deadline ?? ''),
  )
  return {
    jobs: withDeadline.length,
    at_risk: atRisk.size,
    met: met.filter(Boolean).length,
    missed: met.filter((one) => !one).length,
  }
}
