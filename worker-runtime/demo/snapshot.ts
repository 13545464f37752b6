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
  early: Accuracy
  /** Of what was submitted lately; in the end, of what was submitted last. */
  late: Accuracy
  eta: { jobs: number; kept: number | null }
  model: ModelState
}

export type Observed = { jobs: readonly SeenJob[]; promises: Promises; model: ModelState }

export const takeSnapshot = (
  { jobs, promises, model }: Observed,
  times: { beganAtMs: number; nowMs: number; lastAtMs: number; durationMs: number },
): Snapshot => {
  const { beganAtMs, nowMs, lastAtMs, durationMs } = times
  const { earlyUntilMs, lateMs } = phasesOf(durationMs)
  const submittedAt = ({ created_at }: SeenJob): number => Date.parse(created_at) - beganAtMs
  const elapsedMs = nowMs - beganAtMs
  const lateFromMs = Math.max(earlyUntilMs, Math.min(nowMs, lastAtMs) - beganAtMs - lateMs)
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
    early: measureAccuracy(jobs.filter((job) => submittedAt(job) < earlyUntilMs)),
    late: measureAccuracy(jobs.filter((job) => submittedAt(job) >= lateFromMs)),
    eta: keptPromises(jobs, promises),
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

/** Whether jobs had ended by the `finish_p90_at` of the answer to their submission. */
const keptPromises = (jobs: readonly SeenJob[], { finishBy }: Promises): Snapshot['eta'] => {
  const ended = jobs.flatMap(({ id, status, finished_at }) => {
    const by = finishBy.get(id)
    return by && finished_at && status === 'completed' ? Date.parse(finished_at) <= Date.parse(by) : []
  })
  const kept = ended.filter(Boolean).length
  return { jobs: ended.length, kept: ended.length === 0 ? null : kept / ended.length }
}

export const sumOf = (tenants: readonly TenantCount[], field: Exclude<keyof TenantCount, 'name'>): number =>
  tenants.reduce((sum, tenant) => sum + tenant[field], 0)
