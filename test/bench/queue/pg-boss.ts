import { withClient } from '../../../worker-runtime/migrate.ts'
import { loadPeer } from '../peers/load.ts'
import { type Contender, JOB_TYPE, PAYLOAD, type QueueClient } from './contender.ts'

/** The part of the API that is used here. */
type PgBossModule = { PgBoss: new (options: object) => PgBoss }
type PgBoss = {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  createQueue(name: string, options: object): Promise<void>
  send(name: string, data: object): Promise<unknown>
  insert(name: string, jobs: { data: object }[]): Promise<unknown>
  stop(options: object): Promise<void>
}

/**
 * A table of its own for the queue (`partition`), notifications instead of polling, and no maintenance in the
 * processes that submit: each of them makes it faster here, and its documentation offers them for that.
 */
export const pgBoss = (): Contender => ({
  key: 'pg_boss',
  name: 'pg-boss',
  about: '12, batches of 500, partition, notify',
  store: 'postgres',
  share: 1,
  worker: { file: new URL('./pg-boss-worker.ts', import.meta.url) },
  prepare: async (url) => {
    const boss = await startBoss(url, 2)
    await boss.createQueue(JOB_TYPE, { partition: true, notify: true })
    await boss.stop({ graceful: false })
  },
  open: async (url, connections): Promise<QueueClient> => {
    const boss = await startBoss(url, connections)
    return {
      add: () => boss.send(JOB_TYPE, PAYLOAD),
      addMany: (count) =>
        boss.insert(
          JOB_TYPE,
          Array.from({ length: count }, () => ({ data: PAYLOAD })),
        ),
      unfinished: () =>
        withClient(url, async (client) => Number((await client.query(UNFINISHED)).rows[0].jobs)),
      close: () => boss.stop({ graceful: false }),
    }
  },
  seedFinished: async (url, count) => {
    await withClient(url, (client) => client.query(SEED_FINISHED, [count]))
  },
})

const startBoss = async (connectionString: string, max: number): Promise<PgBoss> => {
  const { PgBoss } = await loadPeer<PgBossModule>('pg-boss')
  const boss = new PgBoss({ connectionString, max, supervise: false, schedule: false })
  // Dropping the database cuts its connections off.
  boss.on('error', () => {})
  await boss.start()
  return boss
}

const UNFINISHED = `select count(*) as jobs from pgboss.job where name = '${JOB_TYPE}' and state < 'completed'`

const SEED_FINISHED = `
  insert into pgboss.job (name, data, state, policy, created_on, started_on, completed_on, retry_count)
  select
    '${JOB_TYPE}', '${JSON.stringify(PAYLOAD)}', 'completed', 'standard',
    at, at, at, 0
  from generate_series(1, $1::int), (values (now() - interval '1 day')) as day (at)`
