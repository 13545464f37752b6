import pg from 'pg'
import { percentile } from '../report.ts'
import type { Arena, Load } from './arena.ts'
import type { Contender } from './contender.ts'
import { type Drain, drain } from './drain.ts'
import { measureEnqueue } from './enqueue.ts'
import { isPeer, type Sample } from './metrics.ts'
import { pickupTimes } from './pickup.ts'
import type { Sizes } from './sizes.ts'

/** A step of a round: what it adds to the samples of each contender, or nothing where it does not apply. */
export type Step = {
  name: string
  run: (contenders: readonly Contender[]) => AsyncIterable<[Contender, Sample]>
}

/** One contender after the other. */
const each = (name: string, measure: (contender: Contender) => Promise<Sample>): Step => ({
  name,
  run: async function* (contenders) {
    for (const contender of contenders) yield [contender, await measure(contender)]
  },
})

export const createSteps = (arena: Arena, sizes: Sizes): Step[] => {
  const ofShare = (contender: Contender, jobs: number): number => Math.round(jobs * contender.share)

  const drainLoaded = (contender: Contender, load: Load, workers = 4): Promise<Drain> =>
    arena.withLoaded(contender, load, (url) =>
      drain(arena, contender, {
        url,
        workers,
        jobs: load.queued,
        measured: Math.min(load.queued, ofShare(contender, sizes.drain)),
      }),
    )

  const drainPlain = (contender: Contender, workers: number): Promise<Drain> =>
    drainLoaded(contender, { queued: ofShare(contender, sizes.drain) }, workers)

  const drainUnderSnapshot = (contender: Contender): Promise<Drain> =>
    arena.withLoaded(contender, { queued: sizes.long }, (url) =>
      withOldSnapshot(url, () =>
        drain(arena, contender, { url, workers: 4, jobs: sizes.long, capMs: sizes.snapshotCapMs }),
      ),
    )

  /** What two drains are compared by is measured in turns, several of each: a machine changes its speed in seconds. */
  const drainInTurns = (contender: Contender, load: Load): Promise<{ rate: number; share: number }> =>
    arena.withLoaded(contender, load, async (url) => {
      const rates: number[] = []
      const shares: number[] = []
      for (let turn = 0; turn < sizes.turns; turn++) {
        if (turn > 0) await arena.load(contender, url, sizes.drain)
        const plain = await drainPlain(contender, 4)
        const options = { url, workers: 4, jobs: load.queued, measured: sizes.drain }
        const { steadyPerSecond } = await drain(arena, contender, options)
        rates.push(steadyPerSecond)
        shares.push(steadyPerSecond / plain.steadyPerSecond)
      }
      return { rate: percentile(rates, 0.5), share: percentile(shares, 0.5) }
    })

  /** What is compared with peers is done three times a round: a machine that is busy for a second must not decide. */
  const compared: Step[] = [
    {
      name: 'pickup',
      run: async function* (contenders) {
        const times = await pickupTimes(arena, contenders, sizes)
        for (const [contender, pickup] of times) yield [contender, { pickup }]
      },
    },
    each('enqueue', (contender) => measureEnqueue(arena, contender, sizes)),
    each('drain, 4 workers', async (contender) => withCosts(await drainPlain(contender, 4))),
  ]

  return [
    ...compared,
    each('drain, 1 worker', async (contender) => ({
      drain_1: (await drainPlain(contender, 1)).jobsPerSecond,
    })),
    ...compared,
    each('drain of a long queue', async (contender) => ({
      long_queue: (await drainLoaded(contender, { queued: sizes.long })).steadyPerSecond,
    })),
    each('drain under an old snapshot', async (contender) =>
      contender.store === 'postgres' ? { snapshot: (await drainUnderSnapshot(contender)).lastToFirst } : {},
    ),
    each('drain beside finished jobs', async (contender) => {
      const load = { queued: sizes.drain, finished: sizes.huge }
      if (!isPeer(contender.key)) {
        const { rate, share } = await drainInTurns(contender, load)
        return { huge_finished: rate, finished_share: share }
      }
      if (!contender.seedFinished) return {}
      const { steadyPerSecond } = await drainLoaded(contender, load)
      return { huge_finished: steadyPerSecond }
    }),
    each('drain of a very long queue', async (contender) => {
      // Of SmartQueue alone: it is its own promise, and filling the peers takes minutes each.
      if (isPeer(contender.key)) return {}
      const { rate, share } = await drainInTurns(contender, { queued: sizes.huge })
      return { huge_queue: rate, huge_share: share }
    }),
    ...compared,
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
