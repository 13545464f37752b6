import pg from 'pg'
import type { Arena } from './arena.ts'
import type { Contender } from './contender.ts'
import { type Drain, drain } from './drain.ts'
import { measureEnqueue } from './enqueue.ts'
import { type Sample, SUBJECT } from './metrics.ts'
import { pickupTimes } from './pickup.ts'
import type { Sizes } from './sizes.ts'

/** A step of a round: what it adds to the round's samples, or nothing if it does not apply to the contender. */
export type Step = { name: string; run: (contender: Contender) => Promise<Sample> }

export const createSteps = (arena: Arena, sizes: Sizes): Step[] => {
  const ofShare = (contender: Contender, jobs: number): number => Math.round(jobs * contender.share)

  const drainPlain = (contender: Contender, workers: number): Promise<Drain> => {
    const jobs = ofShare(contender, sizes.drain)
    return arena.withLoaded(contender, { queued: jobs }, (url) =>
      drain(arena, contender, { url, workers, jobs }),
    )
  }

  const drainStart = (contender: Contender, queued: number): Promise<Drain> =>
    arena.withLoaded(contender, { queued }, (url) =>
      drain(arena, contender, {
        url,
        workers: 4,
        jobs: queued,
        measured: ofShare(contender, sizes.measured),
      }),
    )

  const drainUnderSnapshot = (contender: Contender): Promise<Drain> =>
    arena.withLoaded(contender, { queued: sizes.long }, (url) =>
      withOldSnapshot(url, () =>
        drain(arena, contender, { url, workers: 4, jobs: sizes.long, capMs: sizes.snapshotCapMs }),
      ),
    )

  const drainBesideFinished = (contender: Contender): Promise<Drain> =>
    arena.withLoaded(contender, { queued: sizes.drain, finished: sizes.huge }, (url) =>
      drain(arena, contender, { url, workers: 4, jobs: sizes.drain }),
    )

  /** What two drains of ours are compared by is measured side by side: between rounds a machine may change its speed. */
  const plainBefore = async (contender: Contender): Promise<number | undefined> =>
    contender.key === SUBJECT ? (await drainPlain(contender, 4)).steadyPerSecond : undefined

  /** What waits for the disk is done three times a round: one that is busy for a second must not decide. */
  const waitingForDisk: Step[] = [
    {
      name: 'pickup',
      run: async (contender) => ({ pickup: await pickupTimes(arena, contender, sizes.pickups) }),
    },
    { name: 'enqueue', run: (contender) => measureEnqueue(arena, contender, sizes) },
  ]

  return [
    ...waitingForDisk,
    {
      name: 'drain, 1 worker',
      run: async (contender) => ({ drain_1: (await drainPlain(contender, 1)).jobsPerSecond }),
    },
    { name: 'drain, 4 workers', run: async (contender) => withCosts(await drainPlain(contender, 4)) },
    ...waitingForDisk,
    {
      name: 'drain of a long queue',
      run: async (contender) => ({ long_queue: (await drainStart(contender, sizes.long)).steadyPerSecond }),
    },
    {
      name: 'drain under an old snapshot',
      run: async (contender) =>
        contender.store === 'postgres' ? { snapshot: (await drainUnderSnapshot(contender)).lastToFirst } : {},
    },
    {
      name: 'drain beside finished jobs',
      run: async (contender) => {
        if (!contender.seedFinished) return {}
        const plain = await plainBefore(contender)
        const { steadyPerSecond } = await drainBesideFinished(contender)
        return { huge_finished: steadyPerSecond, ...(plain && { finished_share: steadyPerSecond / plain }) }
      },
    },
    {
      name: 'drain of a very long queue',
      run: async (contender) => {
        // Of SmartQueue alone: it is its own promise, and filling the peers takes minutes each.
        const plain = await plainBefore(contender)
        if (!plain) return {}
        const { steadyPerSecond } = await drainStart(contender, sizes.huge)
        return { huge_queue: steadyPerSecond, huge_share: steadyPerSecond / plain }
      },
    },
    ...waitingForDisk,
  ]
}

const withCosts = ({ jobsPerSecond, steadyPerSecond, perJob }: Drain): Sample => ({
  drain_4: jobsPerSecond,
  steady_4: steadyPerSecond,
  ...(perJob.serverCpuMicros !== undefined && { server_cpu: perJob.serverCpuMicros }),
  ...(perJob.nodeCpuMicros !== undefined && { node_cpu: perJob.nodeCpuMicros }),
  ...(perJob.walBytes !== undefined && { wal_bytes: perJob.walBytes }),
})

/** A session that sees the database as it is now, as a long report or a forgotten psql does: nothing is cleaned up. */
const withOldSnapshot = async <T>(url: string, work: () => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('begin isolation level repeatable read')
    await client.query('select 1')
    return await work()
  } finally {
    await client.end()
  }
}
