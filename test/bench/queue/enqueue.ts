import { type Arena, addInBatches, withQueue } from './arena.ts'
import type { Contender, QueueClient } from './contender.ts'

/** Jobs a second, one after the other on one connection. */
export const enqueueOneByOne = (arena: Arena, contender: Contender, jobs: number): Promise<number> =>
  measure(arena, contender, { connections: 1, jobs }, async (queue) => {
    for (let n = 0; n < jobs; n++) await queue.add()
  })

/** Jobs a second in batches of 1,000, one after the other on one connection. */
export const enqueueInBatches = (arena: Arena, contender: Contender, jobs: number): Promise<number> =>
  measure(arena, contender, { connections: 1, jobs }, (queue) => addInBatches(queue, jobs))

export const IN_FLIGHT = 50

/** Jobs a second of 50 submitters, each of which waits for its job before it sends the next. */
export const enqueueConcurrently = (arena: Arena, contender: Contender, jobs: number): Promise<number> =>
  measure(arena, contender, { connections: IN_FLIGHT, jobs }, async (queue) => {
    let left = jobs
    const submitter = async (): Promise<void> => {
      while (left-- > 0) await queue.add()
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, submitter))
  })

const measure = (
  arena: Arena,
  contender: Contender,
  options: { connections: number; jobs: number },
  submit: (queue: QueueClient) => Promise<void>,
): Promise<number> =>
  arena.withEmpty(contender, async (url) => {
    await arena.storeOf(contender).settle(url)
    return withQueue(contender, { url, connections: options.connections }, async (queue) => {
      // Opens the connections and prepares the statements.
      await Promise.all(Array.from({ length: options.connections }, () => queue.add()))
      const startMs = performance.now()
      await submit(queue)
      return (options.jobs / (performance.now() - startMs)) * 1000
    })
  })
