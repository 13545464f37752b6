import { type Accuracy, measureAccuracy, phasesOf } from './accuracy.ts'
import { TENANTS, type TenantName } from './kinds.ts'
import { isFinished, type SeenJob } from './observer.ts'
import type { Promises } from './submitter.ts'

/** The network in use, as `GET /model` tells. */
export type ModelState = { version: number | null; trained_on: number; learned: number }

export type TenantCount = {
  name: TenantName
  submitted: number
  completed: number
  failed: number
  cancelled: number
  open: number
}

/** How the run stands, at one moment. */
export type Snapshot = {
  elapsedMs: number
  durationMs: number
  tenants: TenantCount[]
  queue: { ready: number; running: number; other: number }
  /** Of what was submitted at the very first, and in the beginning. */
  first: Accuracy
  early: Accuracy
  /** Of what was submitted lately; in the end, of what was submitted last. */
  late: Accuracy
  eta: { early: Kept; late: Kept }
  model: ModelState
}

/** The share of jobs that had ended by the `finish_p90_at` of the answer to their submission. */
export type Kept = { jobs: number; share: number | null }

export type Observed = { jobs: readonly SeenJob[]; promises: Promises; model: ModelState }

export const takeSnapshot = (
  { jobs, promises, model }: Observed,
  times: { beganAtMs: number; nowMs: number; lastAtMs: number; durationMs: number },
): Snapshot => {
  const { beganAtMs, nowMs, lastAtMs, durationMs } = times
  const { firstUntilMs, earlyUntilMs, lateMs } = phasesOf(durationMs)
  const submittedAt = ({ created_at }: SeenJob): number => Date.parse(created_at) - beganAtMs
  const elapsedMs = nowMs - beganAtMs
  const lateFromMs = Math.max(earlyUntilMs, Math.min(nowMs, lastAtMs) - beganAtMs - lateMs)
  const early = jobs.filter((job) => submittedAt(job) < earlyUntilMs)
  const late = jobs.filter((job) => submittedAt(job) >= lateFromMs)
  return {
    elapsedMs,
    durationMs,
    tenants: TENANTS.map((name) =>
      countTenant(
        name,
        jobs.filter(({ tenant }) => tenant === name),
      ),
    ),
    queue: countQueue(jobs),
    first: measureAccuracy(early.filter((job) => submittedAt(job) < firstUntilMs)),
    early: measureAccuracy(early),
    late: measureAccuracy(late),
    eta: { early: countKept(early, promises), late: countKept(late, promises) },
    model,
  }
}

const countTenant = (name: TenantName, jobs: readonly SeenJob[]): TenantCount => {
  const count = (...states: string[]): number => jobs.filter(({ status }) => states.includes(status)).length
  const ended = { completed: count('completed'), failed: count('failed'), cancelled: count('cancelled') }
  return { name, submitted: jobs.length, ...ended, open: jobs.filter((job) => !isFinished(job)).length }
}

const countQueue = (jobs: readonly SeenJob[]): Snapshot['queue'] => {
  const count = (state: string): number => jobs.filter(({ status }) => status === state).length
  return { ready: count('ready'), running: count('running'), other: count('blocked') + count('retrying') }
}

const countKept = (jobs: readonly SeenJob[], { finishBy }: Promises): Kept => {
  const kept = jobs.flatMap(({ id, status, finished_at }) => {
    const by = finishBy.get(id)
    return by && finished_at && status === 'completed' ? Date.parse(finished_at) <= Date.parse(by) : []
  })
  const share = kept.length === 0 ? null : kept.filter(Boolean).length / kept.length
  return { jobs: kept.length, share: share === null ? null : Math.round(share * 1000) / 1000 }
}

export const sumOf = (tenants: readonly TenantCount[], field: Exclude<keyof TenantCount, 'name'>): number =>
  tenants.reduce((sum, tenant) => sum + tenant[field], 0)
