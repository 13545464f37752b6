import { rm } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { startReaper } from '../../../worker-runtime/local/reaper-link.ts'
import { createTestFolder } from '../../support/folder.ts'
import type { BenchOptions, BenchReport } from '../report.ts'
import { type Arena, createArena } from './arena.ts'
import type { Contender } from './contender.ts'
import { findContenders } from './contenders.ts'
import { startPostgresStore } from './postgres-store.ts'
import { startRedisStore } from './redis-store.ts'
import { runRounds } from './rounds.ts'
import { FULL, QUICK, type Sizes } from './sizes.ts'
import { printStandings, printTargets } from './tables.ts'
import { checkTargets } from './targets.ts'

/** SmartQueue beside the queues it is compared with: one machine, one Postgres with fsync on, no-op jobs. */
export const benchQueue = async (options: BenchOptions): Promise<BenchReport> => {
  const sizes = options.quick ? QUICK : FULL
  const startedMs = performance.now()
  const elapsedSeconds = (): number => Math.round((performance.now() - startedMs) / 1000)
  const say = (line: string): void => options.say(`${String(elapsedSeconds()).padStart(4)} s  ${line}`)
  const contenders = await findContenders(say, options.before)
  const { medians, rounds } = await withArena(say, (arena) => runRounds(arena, contenders, { sizes, say }))
  const targets = checkTargets(medians)
  const seconds = elapsedSeconds()
  return {
    data: {
      machine: { cores: availableParallelism(), cpu: cpus()[0]?.model, node: process.version },
      seconds,
      sizes,
      contenders: describe(contenders),
      medians,
      rounds,
      targets,
    },
    text: [
      title(sizes),
      printStandings(contenders, medians),
      '\nTargets',
      printTargets(targets),
      `\n${seconds} s on ${availableParallelism()} cores.`,
    ].join('\n'),
  }
}

const title = ({ rounds, drain, long, huge }: Sizes): string => {
  const count = (jobs: number): string => jobs.toLocaleString('en')
  const queues = `${count(drain)} jobs a drain, ${count(long)} in a long queue, ${count(huge)} in a very long one`
  return `No-op jobs, Postgres with fsync on, median of ${rounds}: ${queues}\n`
}

const describe = (contenders: readonly Contender[]) =>
  Object.fromEntries(contenders.map(({ key, name, about, share }) => [key, { name, about, share }]))

const withArena = async <T>(
  say: (line: string) => void,
  measure: (arena: Arena) => Promise<T>,
): Promise<T> => {
  say('Starting a Postgres of its own, with fsync on…')
  const folder = await createTestFolder()
  // Whatever ends this process, its servers end too.
  const reaper = startReaper(() => {})
  const postgres = await startPostgresStore(folder, reaper)
  const redis = startRedisStore(folder, reaper)
  try {
    return await measure(createArena({ postgres, redis }))
  } finally {
    await Promise.all([postgres.stop(), redis.stop()])
    reaper.release()
    await rm(folder, { recursive: true, force: true })
  }
}
