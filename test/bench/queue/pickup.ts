import { setTimeout as delay } from 'node:timers/promises'
import { type Arena, withQueue } from './arena.ts'
import { sharedNowMs } from './clock.ts'
import type { Contender } from './contender.ts'
import { startWorkers } from './worker-processes.ts'

/** After all that was written to set it up, a disk is slow for a while. */
const REST_MS = 2_000
const WARM_UP = 50
const PAUSE_MS = 10
const GIVE_UP_MS = 60_000

/** Milliseconds from just before a job is submitted until its handler starts in another process, on an idle queue. */
export const pickupTimes = (arena: Arena, contender: Contender, samples: number): Promise<number[]> =>
  arena.withEmpty(contender, async (url) => {
    await arena.storeOf(contender).settle(url)
    const workers = await startWorkers(contender, { url, count: 1, mode: 'pickup' })
    await delay(REST_MS)
    try {
      return await withQueue(contender, { url, connections: 1 }, async (queue) => {
        const times: number[] = []
        while (times.length < WARM_UP + samples) {
          const start = workers.nextStart()
          const sentMs = sharedNowMs()
          await queue.add()
          times.push((await Promise.race([start, workers.failed, giveUp(contender)])) - sentMs)
          // Long enough that the end of the job is stored and the worker idle again.
          await delay(PAUSE_MS)
        }
        return times.slice(WARM_UP)
      })
    } finally {
      await workers.stop()
    }
  })

const giveUp = async (contender: Contender): Promise<never> => {
  await delay(GIVE_UP_MS, undefined, { ref: false })
  throw new Error(`${contender.name} has not started a job for ${GIVE_UP_MS} ms`)
}
