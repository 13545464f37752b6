import { setTimeout as delay } from 'node:timers/promises'
import { type Arena, withQueue } from './arena.ts'
import { sharedNowMs } from './clock.ts'
import type { Contender } from './contender.ts'
import { startWorkers } from './worker-processes.ts'

/** After all that was written to set it up, a disk is slow for a while. */
const REST_MS = 2_000
const TURN = 20
/** Not counted at the beginning of a turn: what others did meanwhile has to leave the caches. */
const TURN_WARM_UP = 5
/** Long enough that the end of the job is stored and the worker idle again. */
const PAUSE_MS = 10
/** Enough for the end of the job to be stored. */
const WARM_UP_PAUSE_MS = 3
const GIVE_UP_MS = 60_000

/**
 * Milliseconds from just before a job is submitted until its handler starts in another process, on an idle queue. All
 * contenders stand by with a worker and take turns: whatever slows the machine down for a while meets all of them.
 *
 * Workers run for days, so they are measured as they are then: a cold one is slower, whosever it is. p50 and p99 of 1,600
 * pickups, ours and graphile-worker's: after 50 jobs 3.0 and 8.3 ms to 3.1 and 8.4, after 1,500 2.6 and 5.8 to 2.9 and
 * 6.1, after 4,000 2.5 and 5.8 to 2.8 and 6.5. So warmth is in our favour, by a tenth of the ratio of the p99s, and more
 * of it changes little.
 */
export const pickupTimes = (
  arena: Arena,
  contenders: readonly Contender[],
  { pickups, warmUps }: { pickups: number; warmUps: number },
): Promise<Map<Contender, number[]>> =>
  withIdle(arena, contenders, async (idle) => {
    await Promise.all(idle.map(({ pickUp }) => repeat(warmUps, pickUp, WARM_UP_PAUSE_MS)))
    await delay(REST_MS)
    const times = new Map<Contender, number[]>(contenders.map((contender) => [contender, []]))
    for (let n = 0; n < pickups; n += TURN) {
      for (const { contender, pickUp } of idle) {
        await repeat(TURN_WARM_UP, pickUp)
        times.get(contender)?.push(...(await repeat(Math.min(TURN, pickups - n), pickUp)))
      }
    }
    return times
  })

const repeat = async (
  count: number,
  pickUp: () => Promise<number>,
  pauseMs = PAUSE_MS,
): Promise<number[]> => {
  const times: number[] = []
  while (times.length < count) {
    times.push(await pickUp())
    await delay(pauseMs)
  }
  return times
}

type Idle = { contender: Contender; pickUp: () => Promise<number> }

const withIdle = async <T>(
  arena: Arena,
  [first, ...others]: readonly Contender[],
  use: (idle: Idle[]) => Promise<T>,
): Promise<T> =>
  first ? withIdleOne(arena, first, (one) => withIdle(arena, others, (idle) => use([one, ...idle]))) : use([])

const withIdleOne = <T>(arena: Arena, contender: Contender, use: (idle: Idle) => Promise<T>): Promise<T> =>
  arena.withEmpty(contender, async (url) => {
    await arena.storeOf(contender).settle(url)
    const workers = await startWorkers(contender, { url, count: 1, mode: 'pickup' })
    try {
      return await withQueue(contender, { url, connections: 1 }, (queue) =>
        use({
          contender,
          pickUp: async () => {
            const start = workers.nextStart()
            const sentMs = sharedNowMs()
            await queue.add()
            return (await Promise.race([start, workers.failed, giveUp(contender)])) - sentMs
          },
        }),
      )
    } finally {
      await workers.stop()
    }
  })

const giveUp = async (contender: Contender): Promise<never> => {
  await delay(GIVE_UP_MS, undefined, { ref: false })
  throw new Error(`${contender.name} has not started a job for ${GIVE_UP_MS} ms`)
}
