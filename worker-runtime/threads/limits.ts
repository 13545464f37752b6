import { setFlagsFromString } from 'node:v8'
import type { ResourceLimits } from 'node:worker_threads'

/**
 * The heap of one thread. A handler that holds more than 256 MiB dies alone, with `thread_died`, and not with the worker.
 * What it leaves behind is collected early: reading a CSV of a million rows takes 5 MB more with 8 MiB, 15 more with 16, and
 * 50 more with what a thread would get otherwise; none of them is faster.
 */
export const THREAD_LIMITS: ResourceLimits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 }

/**
 * A worker is started with `--max-semi-space-size=64`, for what its jobs in flight leave behind, and in a container with
 * `--max-old-space-size`. V8 gives both to every thread, too, whatever the limits of it say. The heap of this thread is laid out
 * already, so the flags can go.
 */
export const forgetHeapFlags = (): void => {
  setFlagsFromString('--max-semi-space-size=0')
  setFlagsFromString('--max-old-space-size=0')
}
