import pg from 'pg'
import { setQuotas } from '../../../db/queries/quotas.ts'
import { submitJobs } from '../../../db/queue/submit.ts'
import { withClient } from '../../../worker-runtime/migrate.ts'
import { seedTenant } from '../../support/jobs.ts'
import type { Arena } from '../queue/arena.ts'
import type { Contender } from '../queue/contender.ts'
import { loadBefore } from '../queue/contenders.ts'
import { drain } from '../queue/drain.ts'
import { rotate } from '../queue/rounds.ts'
import { BEYOND_REACH, noopJob, runOn, smartqueue, UNFINISHED, urlOf } from '../queue/smartqueue.ts'
import { percentile } from '../report.ts'
import { atLeast, type Row } from './rows.ts'

const ORGS = 100
const WORKERS = 4

/** The same jobs, of a hundred organisations. */
export const hundred: Contender = {
  ...smartqueue,
  key: 'hundred',
  name: `${ORGS} organisations`,
  prepare: async (url) => {
    await smartqueue.prepare(url)
    await withClient(url, async (client) => {
      for (let n = 1; n < ORGS; n++) await seedTenant(runOn(client))
      await runOn(client)(setQuotas(null, BEYOND_REACH))
    })
  },
  open: async (url) => {
    const orgIds = await withClient(url, async (client) => {
      const { rows } = await client.query<{ id: string }>('select id from smartqueue.orgs order by id')
      return rows.map(({ id }) => id)
    })
    const client = new pg.Client({ connectionString: urlOf(url, 'workers') })
    await client.connect()
    const addMany = async (count: number): Promise<void> => {
      const jobs = Array.from({ length: count / ORGS }, noopJob)
      const groups = orgIds.map((orgId) => ({ orgId, userId: null, jobs: jobs.map(noopJob) }))
      await runOn(client)(submitJobs(groups))
    }
    return {
      add: () => addMany(ORGS),
      addMany,
      unfinished: async () => Number((await client.query(UNFINISHED)).rows[0].jobs),
      close: () => client.end(),
    }
  },
}

/** Drain rates of no-op jobs: a hundred organisations against one, and one against an earlier commit. */
export const drainRows = async (
  arena: Arena,
  options: { jobs: number; rounds: number; before?: string | undefined; say: (line: string) => void },
): Promise<{ rows: Row[]; rounds: Record<string, number[]> }> => {
  const before = options.before === undefined ? undefined : await loadBefore(options.before)
  const contenders = [smartqueue, hundred, ...(before ? [before] : [])]
  const rounds: Record<string, number[]> = Object.fromEntries(contenders.map(({ key }) => [key, []]))
  for (let round = 0; round < options.rounds; round++) {
    for (const contender of rotate(contenders, round)) {
      const { jobsPerSecond } = await arena.withLoaded(contender, { queued: options.jobs }, (url) =>
        drain(arena, contender, { url, workers: WORKERS, jobs: options.jobs }),
      )
      rounds[contender.key]?.push(jobsPerSecond)
      options.say(`drain, round ${round + 1}: ${contender.name}: ${Math.round(jobsPerSecond)} jobs/s`)
    }
  }
  const median = (key: string): number => percentile(rounds[key] ?? [], 0.5)
  const row = (scenario: string, keys: [string, string], limit: number): Row =>
    atLeast({
      scenario,
      what: `median of ${options.rounds}: ${keys.map((key) => Math.round(median(key))).join(' and ')} jobs/s`,
      measured: median(keys[0]) / median(keys[1]),
      limit,
      unit: '×',
    })
  return {
    rounds,
    rows: [
      row(`drain, ${WORKERS} workers: ${ORGS} organisations / one`, ['hundred', 'smartqueue'], 0.9),
      ...(before
        ? [row(`drain, ${WORKERS} workers: one organisation / before`, ['smartqueue', before.key], 0.95)]
        : []),
    ],
  }
}
