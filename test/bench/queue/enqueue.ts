import { type Arena, addInBatches, withQueue } from './arena.ts'
import type { Contender, QueueClient } from './contender.ts'
import type { Measurements } from './metrics.ts'

const IN_FLIGHT = 50

/** Jobs a second, nobody running any: one after the other, from 50 submitters, and in batches of 1,000. */
export const measureEnqueue = (
  arena: Arena,
  contender: Contender,
  jobs: { oneByOne: number; concurrent: number; inBatches: number },
): Promise<Measurements> =>
  arena.withEmpty(contender, async (url) => {
    await arena.storeOf(contender).settle(url)
    const rate = (connections: number, count: number, submit: Submit): Promise<number> =>
      withQueue(contender, { url, connections }, (queue) => rateOf(queue, { connections, count, submit }))
    return {
      enqueue_one: await rate(1, jobs.oneByOne, oneByOne),
      enqueue_concurrent: await rate(IN_FLIGHT, jobs.concurrent, concurrently),
      enqueue_batch: await rate(1, jobs.inBatches, addInBatches),
    }
  })

type Submit = (queue: QueueClient, count: number) => Promise<void>

const rateOf = async (
  queue: QueueClient,
  { connections, count, submit }: { connections: number; count: number; submit: Submit },
): Promise<number> => {
  // Opens the connections, prepares and plans the statements, and lets the library's code be compiled: a server that
  // submits jobs runs for days.
  await Promise.all(Array.from({ length: connections }, () => queue.add()))
  await submit(queue, count)
  const startMs = performance.now()
  await submit(queue, count)
  return (count / (performance.now() - startMs)) * 1000
}

const oneByOne: Submit = async (queue, count) => {
  for (let n = 0; n < count; n++) await queue.add()
}

/** Each submitter waits for its job before it sends the next. */
const concurrently: Submit = async (queue, count) => {
  let left = count
  const submitter = async (): Promise<void> => {
    while (left-- > 0) await queue.add()
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, submitter))
}
