/**
 * Learning, of runtimes and of the load, as a duty of the leader. It is done in a thread of its own, with a database connection
 * of its own: a round of training takes seconds, and rows by the thousand are unpacked for it, while this thread must renew
 * leases and send heartbeats. Here nothing is done but to start that thread under the term, to pass on what it has to say, and
 * to end it when this worker leads no more. One that is not ended in time changes nothing: all that it writes carries its term.
 */
import { Worker as Thread } from 'node:worker_threads'
import type { Duty } from '../duties.ts'
import type { LogFields, Logger } from '../logger.ts'

/** What the thread is told at its start, and what it says. */
export type ThreadTask = Pick<
  LearningOptions,
  'url' | 'applicationName' | 'leadSeconds' | 'sharesEstimates'
> & {
  term: string
}
export type ThreadMessage =
  | { kind: 'log'; level: keyof Logger; message: string; fields: LogFields | undefined }
  | { kind: 'failed'; reason: string }

export const STOP = 'stop'

/** What a leader does first is to look after jobs; one of a moment need not learn. */
const FIRST_MS = 1_000
const LOOK_MS = 1_000
/** After a crash: what made it crash is probably still there. */
const RESTART_MS = 30_000
/** To close its connection, if it is not in the middle of a round. */
const GRACE_MS = 300
export const MAX_HEAP_MB = 512

export type LearningOptions = {
  url: string
  applicationName: string
  logger: Logger
  onError: (error: Error) => void
  /** How far ahead the load is forecast. */
  leadSeconds: number
  /** Whether a new series may start from other organisations' runs of its type. */
  sharesEstimates: boolean
  thread?: URL | undefined
  restartMs?: number
}

type Running = { thread: Thread; term: string; exited: Promise<void> }

export const createLearningDuty = (options: LearningOptions): Duty => {
  const { url, applicationName, leadSeconds, sharesEstimates, restartMs = RESTART_MS } = options
  let running: Running | undefined
  let crash: Error | undefined
  let termSeen: string | undefined
  let startAtMs = 0

  const start = (term: string): Running => {
    const task: ThreadTask = { url, applicationName, term, leadSeconds, sharesEstimates }
    const thread = new Thread(options.thread ?? new URL('./thread.ts', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    })
    const exited = Promise.withResolvers<void>()
    const begun: Running = { thread, term, exited: exited.promise }
    const fail = (error: Error): void => {
      if (running !== begun) return
      running = undefined
      crash = error
    }
    thread.on('message', hear)
    thread.on('error', (error) => fail(error as Error))
    thread.on('exit', (code) => {
      fail(new Error(`The learning thread ended with code ${code}`))
      exited.resolve()
    })
    return begun
  }

  const hear = (said: ThreadMessage): void => {
    if (said.kind === 'log') options.logger[said.level](said.message, said.fields)
    else options.onError(new Error(said.reason))
  }

  const rest = async (): Promise<void> => {
    const ended = running
    running = undefined
    crash = undefined
    termSeen = undefined
    if (!ended) return
    ended.thread.postMessage(STOP)
    const impatient = setTimeout(() => void ended.thread.terminate(), GRACE_MS)
    await ended.exited
    clearTimeout(impatient)
  }

  return {
    name: 'learning',
    rest,
    step: async (term) => {
      if (term !== termSeen) {
        await rest()
        termSeen = term
        startAtMs = performance.now() + FIRST_MS
      }
      if (crash) {
        const error = crash
        crash = undefined
        startAtMs = performance.now() + restartMs
        throw error
      }
      const waitMs = startAtMs - performance.now()
      if (!running && waitMs > 0) return Math.min(waitMs, LOOK_MS)
      running ??= start(term)
      return LOOK_MS
    },
  }
}
