import { loadPeer } from '../peers/load.ts'
import { JOB_TYPE } from './contender.ts'
import { runWorker } from './worker-side.ts'

type PgBossModule = { PgBoss: new (options: object) => PgBoss }
type PgBoss = {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  work(name: string, options: object, handler: (jobs: unknown[]) => Promise<unknown>): Promise<unknown>
}

/** One fetch takes 500 jobs, one statement completes them, and a full batch is followed by the next at once. */
const BATCHES = { batchSize: 500, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }

// A second fetcher makes a lone worker a third to a half faster. Four workers with two each are slower than with
// one each: 17,200 jobs/s instead of 19,000 on 2 cores.
const localConcurrency = process.env.BENCH_WORKERS === '1' ? 2 : 1

runWorker(async (connectionString, handle) => {
  const { PgBoss } = await loadPeer<PgBossModule>('pg-boss')
  const boss = new PgBoss({ connectionString, useListenNotify: true, supervise: false, schedule: false })
  boss.on('error', console.error)
  await boss.start()
  await boss.work(JOB_TYPE, { ...BATCHES, localConcurrency }, async (jobs) => handle(jobs.length))
})
