import { setTimeout as delay } from 'node:timers/promises'
import { type Api, Refused, Unreachable } from './api.ts'
import { isFinished, type Observer } from './observer.ts'
import type { Progress } from './progress.ts'
import { type ModelState, type Snapshot, takeSnapshot } from './snapshot.ts'
import type { Promises, SubmissionEnd } from './submitter.ts'

export type Watch = {
  /** Looks once, and shows what there is. A look that fails shows what was seen before. */
  look(options: { lastAtMs: number; all?: boolean }): Promise<Snapshot>
  /** Looks every second until all is submitted and has ended, or there is nothing more to wait for. */
  until(
    submitting: Promise<SubmissionEnd>,
    signal: AbortSignal,
  ): Promise<{ how: SubmissionEnd; lastAtMs: number }>
}

const LOOK_MS = 1_000
/** A queue that is not empty by then is not waited for. */
const OVERTIME_MS = 15_000

export const createWatch = (options: {
  observer: Observer
  promises: Promises
  progress: Progress
  api: Api
  durationMs: number
  beganAtMs: number
}): Watch => {
  const { observer, promises, progress, api, durationMs, beganAtMs } = options
  let model: ModelState = { version: null, trained_on: 0, learned: 0 }

  const look: Watch['look'] = async ({ lastAtMs, all = false }) => {
    try {
      const [{ version, trained_on, learned }] = await Promise.all([
        api.get<ModelState>('/model'),
        observer.look(all),
      ])
      model = { version, trained_on, learned }
    } catch (error) {
      if (!(error instanceof Unreachable || error instanceof Refused)) throw error
    }
    const seen = { jobs: observer.jobs(), promises, model }
    const snapshot = takeSnapshot(seen, { beganAtMs, nowMs: Date.now(), lastAtMs, durationMs })
    progress.show(snapshot)
    return snapshot
  }

  /** Nothing is on its way; what waits for its time may go on waiting. */
  const isDrained = (): boolean => observer.jobs().every((job) => isFinished(job) || job.status === 'pending')

  return {
    look,
    until: async (submitting, signal) => {
      let end: { how: SubmissionEnd; lastAtMs: number } | undefined
      const ending = submitting.then((how) => {
        end = { how, lastAtMs: Date.now() }
        return end
      })
      while (
        !signal.aborted &&
        end?.how !== 'unreachable' &&
        Date.now() < beganAtMs + durationMs + OVERTIME_MS
      ) {
        // What was submitted last is seen by a look that began after it.
        const isAll = end !== undefined
        await look({ lastAtMs: end?.lastAtMs ?? Date.now() })
        if (isAll && isDrained()) break
        await delay(LOOK_MS, undefined, { signal }).catch(() => {})
      }
      return ending
    },
  }
}
