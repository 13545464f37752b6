import { describeError, isInstance } from '../describe-error.ts'
import { JobError } from '../handler-api.ts'
import { THREAD_LIMITS } from './limits.ts'
import type { ThreadSettings, ThreadTask } from './messages.ts'
import { startPlainThread } from './plain-thread.ts'

/** A thread that runs attempts, one after the other. */
export type JobThread = {
  /** If it dies before it is freed, `onDied` is told what that means for the attempt. */
  run(task: ThreadTask, onDied: (error: JobError) => void): void
  /** No attempt runs. An idle thread does not keep the process alive. */
  free(): void
  end(): Promise<unknown>
  /** Resolves when it has ended, by itself or because it was told to. */
  readonly ended: Promise<void>
}

const ENTRY = new URL('./thread.ts', import.meta.url)

export const startJobThread = (settings: ThreadSettings): JobThread => {
  const thread = startPlainThread(ENTRY, { workerData: settings, resourceLimits: THREAD_LIMITS })
  let onDied: ((error: JobError) => void) | undefined
  let cause: unknown
  thread.on('error', (error) => {
    cause = error
  })
  const { promise: ended, resolve: hasEnded } = Promise.withResolvers<void>()
  thread.on('exit', (code) => {
    onDied?.(threadDied(cause, code))
    hasEnded()
  })
  return {
    ended,
    run: (task, tell) => {
      thread.ref()
      onDied = tell
      thread.postMessage(task, [task.port])
    },
    free: () => {
      onDied = undefined
      thread.unref()
    },
    end: () => thread.terminate(),
  }
}

const threadDied = (cause: unknown, code: number): JobError =>
  new JobError('thread_died', `The thread of this attempt died: ${reasonOf(cause, code)}.`, { cause })

const reasonOf = (cause: unknown, code: number): string => {
  if (cause === undefined) return `it was left with process.exit(${code})`
  if (isInstance(cause, Error) && 'code' in cause && cause.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return `it needed more than ${THREAD_LIMITS.maxOldGenerationSizeMb} MiB of heap`
  }
  return `nobody caught "${describeError(cause).replace(/\.$/, '')}"`
}
