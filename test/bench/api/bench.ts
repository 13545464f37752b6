import { rm } from 'node:fs/promises'
import { startReaper } from '../../../worker-runtime/local/reaper-link.ts'
import { createTestFolder } from '../../support/folder.ts'
import { startPostgresStore } from '../queue/postgres-store.ts'
import { startRedisStore } from '../queue/redis-store.ts'
import { rotate } from '../queue/rounds.ts'
import type { BenchOptions, BenchReport } from '../report.ts'
import { type Server, startPeers, startSmartQueues } from './servers.ts'
import { benchSteady } from './steady.ts'
import { type Measured, runStep, STEPS, type Step, submitBatches, submitJobs } from './steps.ts'
import { medianOf, printSteps, type StepResult } from './tables.ts'
import { checkTargets, printTargets } from './targets.ts'

const SIZES = { rounds: 3, seconds: 3, ids: 2_000, queued: 1_000_000 }
const QUICK_SIZES = { rounds: 1, seconds: 0.5, ids: 100, queued: 10_000 }

/** The HTTP API on plain workerd, beside Fastify in front of other queues. No worker runs, Postgres has fsync on. */
export const benchApi = async ({ say, quick, before, steady }: BenchOptions): Promise<BenchReport> => {
  if (steady) return benchSteady({ ...steady, say })
  const sizes = quick ? QUICK_SIZES : SIZES
  const folder = await createTestFolder()
  const reaper = startReaper(() => {})
  say('Starting Postgres, and the servers…')
  const stores = {
    postgres: await startPostgresStore(folder, reaper),
    redis: startRedisStore(folder, reaper),
  }
  const place = { folder, stores, reaper }
  const servers = [...(await startSmartQueues(place, before)), ...(await startPeers(place, say))]
  try {
    const short = await runRounds(servers, STEPS, { ...sizes, say })
    const ours = servers.filter(({ isSmartQueue }) => isSmartQueue)
    say(`Queueing ${sizes.queued.toLocaleString('en')} jobs…`)
    for (const server of ours) await queueMore(server, sizes.queued)
    const reads = STEPS.filter(({ name, inFlight }) => name.startsWith('GET') && inFlight === 1)
    const long = await runRounds(ours, reads, { ...sizes, say })
    const targets = checkTargets(short, long)
    const title = `\nWith ${sizes.queued.toLocaleString('en')} more jobs queued\n`
    return {
      data: { sizes, short, long, targets },
      text: [printSteps(short), title, printSteps(long), '\nTargets', printTargets(targets)].join('\n'),
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
    await Promise.all([stores.postgres.stop(), stores.redis.stop()])
    reaper.release()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Each round runs every step on every server, starting with a different server each time. */
const runRounds = async (
  servers: readonly Server[],
  steps: readonly Step[],
  options: { rounds: number; seconds: number; ids: number; say: (line: string) => void },
): Promise<StepResult[]> => {
  const { rounds, seconds, say } = options
  const samples = steps.map(() => new Map<string, Measured[]>())
  for (let round = 0; round < rounds; round++) {
    const ids = new Map<string, string[]>()
    for (const server of servers) ids.set(server.name, await submitJobs(server, options.ids))
    for (const [n, step] of steps.entries()) {
      for (const server of rotate(servers, round + n)) {
        if (step.isOwn && !server.isSmartQueue) continue
        const measured = await runStep(server, step, { seconds, ids: ids.get(server.name) ?? [] })
        samples[n]?.set(server.name, [...(samples[n].get(server.name) ?? []), measured])
        const speed = `${Math.round(measured.perSecond)}/s, p50 ${measured.p50Ms.toFixed(2)} ms`
        say(`Round ${round + 1}, ${step.name}, ${step.inFlight} in flight, ${server.name}: ${speed}`)
      }
    }
  }
  return steps.map(({ name, inFlight }, n) => ({
    name,
    inFlight,
    servers: Object.fromEntries([...(samples[n] ?? [])].map(([server, all]) => [server, medianOf(all)])),
  }))
}

const queueMore = async (server: Server, jobs: number): Promise<void> => {
  await submitBatches(server, jobs)
  await server.store.settle(server.databaseUrl)
}
