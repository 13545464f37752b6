/** What a job has gone through, and probably will, as spans and marks on one axis of time. */
import { isFinished } from '../../../../db/rules/job-states.ts'
import type { Attempt, Job } from '../../api/answers.ts'

export type WaitKind = 'delayed' | 'blocked' | 'waited' | 'queued' | 'backoff' | 'snoozed' | 'ended'

/** `open`: it has not ended yet; `toMs` is the present. */
export type Wait = { kind: WaitKind; fromMs: number; toMs: number; open: boolean }
export type Run = {
  attempt: Attempt
  fromMs: number
  toMs: number
  open: boolean
}
export type Mark = { kind: 'now' | 'deadline' | 'start' | 'p50' | 'p90'; atMs: number }

export type Timeline = {
  fromMs: number
  toMs: number
  waits: Wait[]
  runs: Run[]
  /** Across all rows: the present, the deadline, when it will probably start. */
  marks: Mark[]
  /** Of the attempt that runs or was last. */
  expected: Mark[]
}

type TimedJob = Pick<
  Job,
  'status' | 'depends_on' | 'created_at' | 'run_at' | 'finished_at' | 'deadline' | 'prediction' | 'eta'
>

/** A mark further away than this many times what has happened so far would make it too small to see. */
const FARTHEST = 3
/** The end of the axis stays free, so that the last bar does not look cut off. */
const MARGIN = 1.04

export const timelineOf = (job: TimedJob, attempts: readonly Attempt[], nowMs: number): Timeline => {
  const fromMs = Date.parse(job.created_at)
  const isOver = isFinished(job.status)
  const presentMs = Math.max(isOver && job.finished_at ? Date.parse(job.finished_at) : nowMs, fromMs + 1)
  const runs = attempts.map((attempt) => runOf(attempt, presentMs))
  const waits = waitsOf(job, runs, presentMs)
  const expected = expectedOf(job, runs)
  const marks: Mark[] = [
    ...(isOver ? [] : [{ kind: 'now' as const, atMs: presentMs }]),
    ...(job.status !== 'running' && job.eta
      ? [{ kind: 'start' as const, atMs: Date.parse(job.eta.start_at) }]
      : []),
    ...(job.deadline ? [{ kind: 'deadline' as const, atMs: Date.parse(job.deadline) }] : []),
  ]
  const farthestMs = fromMs + (presentMs - fromMs) * FARTHEST
  const near = [...marks, ...expected].map(({ atMs }) => atMs).filter((atMs) => atMs <= farthestMs)
  const toMs = fromMs + (Math.max(presentMs, ...near) - fromMs) * MARGIN
  return { fromMs, toMs, waits, runs, marks, expected }
}

const runOf = (attempt: Attempt, presentMs: number): Run => {
  const fromMs = Date.parse(attempt.started_at)
  const open = attempt.finished_at === null
  const toMs = attempt.finished_at === null ? presentMs : Date.parse(attempt.finished_at)
  return { attempt, fromMs, toMs: Math.max(toMs, fromMs), open }
}

const AFTER: Record<Attempt['outcome'], WaitKind> = {
  running: 'queued',
  failed: 'backoff',
  lost: 'queued',
  given_back: 'queued',
  snoozed: 'snoozed',
  completed: 'ended',
  cancelled: 'ended',
}

/** What was between the attempts, and before the first. */
const waitsOf = (job: TimedJob, runs: readonly Run[], presentMs: number): Wait[] => {
  const waits: Wait[] = runs.flatMap((run, n) => {
    const before = runs[n - 1]
    return before
      ? [{ kind: AFTER[before.attempt.outcome], fromMs: before.toMs, toMs: run.fromMs, open: false }]
      : beforeFirst(job, run.fromMs, false)
  })
  const last = runs.at(-1)
  if (isFinished(job.status) && last) return waits.filter(isLong)
  if (!last) return beforeFirst(job, presentMs, !isFinished(job.status)).filter(isLong)
  if (last.open) return waits.filter(isLong)
  waits.push({ kind: NOW[job.status] ?? 'queued', fromMs: last.toMs, toMs: presentMs, open: true })
  return waits.filter(isLong)
}

const NOW: Partial<Record<Job['status'], WaitKind>> = {
  pending: 'delayed',
  blocked: 'blocked',
  retrying: 'backoff',
}

/** Until its `run_at` it does not stand in the queue. */
const beforeFirst = (job: TimedJob, untilMs: number, open: boolean): Wait[] => {
  const fromMs = Date.parse(job.created_at)
  const runAtMs = Math.min(Math.max(fromMs, job.run_at ? Date.parse(job.run_at) : fromMs), untilMs)
  // When the last of the others was done is not known afterwards.
  const past = job.depends_on.length > 0 ? 'waited' : 'queued'
  const kind = open ? (NOW[job.status] ?? past) : past
  const isDelayed = open && runAtMs === untilMs
  return [
    { kind: 'delayed', fromMs, toMs: runAtMs, open: isDelayed },
    { kind, fromMs: runAtMs, toMs: untilMs, open: open && !isDelayed },
  ]
}

const isLong = ({ fromMs, toMs }: Wait): boolean => toMs > fromMs

/** The prediction is of an attempt: it counts from the start of the last one, or from when that will probably be. */
const expectedOf = ({ status, prediction, eta }: TimedJob, runs: readonly Run[]): Mark[] => {
  const last = runs.at(-1)
  const waits = status !== 'running' && !isFinished(status)
  const startMs = waits ? eta && Date.parse(eta.start_at) : last?.fromMs
  if (startMs === null || startMs === undefined) return []
  return [
    { kind: 'p50', atMs: startMs + prediction.p50_ms },
    { kind: 'p90', atMs: startMs + prediction.p90_ms },
  ]
}

const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].map((seconds) => seconds * 1_000),
  ...[1, 2, 3, 6, 12, 24, 48, 96, 168].map((hours) => hours * 3_600_000),
]

/** Round times since the beginning, at most `most` of them. */
export const ticksOf = ({ fromMs, toMs }: Pick<Timeline, 'fromMs' | 'toMs'>, most = 6): number[] => {
  const spanMs = toMs - fromMs
  const stepMs =
    STEPS_MS.find((step) => spanMs / step < most) ?? Math.ceil(spanMs / most / 604_800_000) * 604_800_000
  return Array.from({ length: Math.floor(spanMs / stepMs) + 1 }, (_, n) => n * stepMs)
}
