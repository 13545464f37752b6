import type { Contender, QueueClient, Store } from './contender.ts'

/** Where contenders are measured: the servers, and databases in the state that a measurement starts from. */
export type Arena = {
  storeOf(contender: Contender): Store
  /** Hands over a fresh database with the queue installed, and drops it afterwards. */
  withEmpty<T>(contender: Contender, measure: (url: string) => Promise<T>): Promise<T>
  /** The same with jobs queued: a copy of a database that was loaded once. */
  withLoaded<T>(contender: Contender, load: Load, measure: (url: string) => Promise<T>): Promise<T>
  /** Queues that many more. */
  load(contender: Contender, url: string, queued: number): Promise<void>
}

export type Load = { queued: number; finished?: number }

export const BATCH = 1_000

export const createArena = (stores: Partial<Record<Contender['store'], Store>>): Arena => {
  const originals = new Map<string, Promise<string>>()

  const storeOf = (contender: Contender): Store => {
    const store = stores[contender.store]
    if (!store) throw new Error(`There is no ${contender.store} for ${contender.name}`)
    return store
  }

  const create = async (contender: Contender): Promise<string> => {
    const url = await storeOf(contender).create()
    await contender.prepare(url)
    return url
  }

  const createLoaded = async (contender: Contender, load: Load): Promise<string> => {
    const url = await create(contender)
    if (load.finished) await contender.seedFinished?.(url, load.finished)
    await addQueued(contender, url, load.queued)
    return url
  }

  const addQueued = async (contender: Contender, url: string, queued: number): Promise<void> => {
    await withQueue(contender, { url, connections: 1 }, (queue) => addInBatches(queue, queued))
    await storeOf(contender).settle(url)
  }

  const copyLoaded = async (contender: Contender, load: Load): Promise<string> => {
    const key = `${contender.key} ${load.queued} ${load.finished ?? 0}`
    const original = originals.get(key) ?? createLoaded(contender, load)
    originals.set(key, original)
    return storeOf(contender).copy(await original)
  }

  const dropAfter = async <T>(
    contender: Contender,
    url: string,
    measure: (url: string) => Promise<T>,
  ): Promise<T> => {
    try {
      return await measure(url)
    } finally {
      await storeOf(contender).drop(url)
    }
  }

  return {
    storeOf,
    withEmpty: async (contender, measure) => dropAfter(contender, await create(contender), measure),
    load: addQueued,
    withLoaded: async (contender, load, measure) =>
      dropAfter(contender, await copyLoaded(contender, load), measure),
  }
}

export const withQueue = async <T>(
  contender: Contender,
  options: { url: string; connections: number },
  use: (queue: QueueClient) => Promise<T>,
): Promise<T> => {
  const queue = await contender.open(options.url, options.connections)
  try {
    return await use(queue)
  } finally {
    await queue.close()
  }
}

export const addInBatches = async (queue: QueueClient, count: number): Promise<void> => {
  for (let added = 0; added < count; added += BATCH) await queue.addMany(Math.min(BATCH, count - added))
}
