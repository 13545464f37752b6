/** Prints what the heaps of a worker, of a thread of a job and of the thread that learns may take, in MiB. */
import { getHeapStatistics } from 'node:v8'
import { isMainThread, parentPort, type ResourceLimits, Worker as Thread } from 'node:worker_threads'
import { MAX_HEAP_MB } from '../../worker-runtime/learning/duty.ts'
import { forgetHeapFlags, THREAD_LIMITS } from '../../worker-runtime/threads/limits.ts'

const limit = (): number => Math.round(getHeapStatistics().heap_size_limit / 2 ** 20)

const limitOf = (resourceLimits: ResourceLimits): Promise<number> =>
  new Promise((resolve) => {
    new Thread(new URL(import.meta.url), { resourceLimits }).once('message', resolve)
  })

if (isMainThread) {
  forgetHeapFlags()
  const job = await limitOf(THREAD_LIMITS)
  const learning = await limitOf({ maxOldGenerationSizeMb: MAX_HEAP_MB })
  console.log(JSON.stringify({ worker: limit(), job, learning }))
} else parentPort?.postMessage(limit())
