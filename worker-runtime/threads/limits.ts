import { setFlagsFromString } from 'node:v8'
import type { ResourceLimits } from 'node:worker_threads'

/**
 * The heap of one thread. A handler that holds more dies alone, with `thread_died`, and not with the worker.
 */
export const THREAD_LIMITS: ResourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 }

/**
 * A worker is started with `--max-semi-space-size=64`, for what its jobs in flight leave behind. V8 gives that to every
 * thread, too, whatever its limits say: up to 192 MiB each. The heap of this thread is laid out already, so the flag can go.
 */
export const forgetYoungGeneration = (): void => setFlagsFromString('--max-semi-space-size=0')
