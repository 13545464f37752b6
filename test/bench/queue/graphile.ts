import { withClient } from '../../../worker-runtime/migrate.ts'
import { loadPeer } from '../peers/load.ts'
import { type Contender, JOB_TYPE, PAYLOAD, type QueueClient } from './contender.ts'
import { BATCHED, CONCURRENT_JOBS } from './graphile-options.ts'

/** The part of the API that is used here. */
type GraphileWorker = {
  Logger: new (factory: () => () => void) => unknown
  makeWorkerUtils(options: object): Promise<WorkerUtils>
}
type WorkerUtils = {
  migrate(): Promise<void>
  addJob(identifier: string, payload: object): Promise<unknown>
  addJobs(specs: { identifier: string; payload: object }[]): Promise<unknown>
  release(): Promise<void>
}

const file = new URL('./graphile-worker.ts', import.meta.url)

/** As it comes: each job is fetched and completed by statements of its own. */
export const graphileDefault = (): Contender => ({
  ...graphile,
  key: 'graphile_default',
  name: 'graphile-worker',
  about: `0.18, ${CONCURRENT_JOBS} jobs at a time`,
  // Two commits a job: a tenth of the jobs takes as long as all of them with the local queue.
  share: 0.1,
  worker: { file, env: { BENCH_BATCHED: '' } },
})

/** As its documentation makes it fast: jobs are fetched and completed in batches. */
export const graphileBatched = (): Contender => ({
  ...graphile,
  key: 'graphile_local_queue',
  name: 'graphile-worker, local queue',
  about: `0.18, local queue of ${BATCHED.localQueue.size}, completion in batches, ${CONCURRENT_JOBS} jobs at a time`,
  share: 1,
  worker: { file, env: { BENCH_BATCHED: '1' } },
})

const graphile = {
  store: 'postgres',
  prepare: async (url: string) => {
    const utils = await openUtils(url, 1)
    await utils.migrate()
    await utils.release()
  },
  open: async (url: string, connections: number): Promise<QueueClient> => {
    const utils = await openUtils(url, connections)
    return {
      add: () => utils.addJob(JOB_TYPE, PAYLOAD),
      addMany: (count) =>
        utils.addJobs(Array.from({ length: count }, () => ({ identifier: JOB_TYPE, payload: PAYLOAD }))),
      unfinished: () => withClient(url, async (client) => Number((await client.query(COUNT)).rows[0].jobs)),
      close: () => utils.release(),
    }
  },
} as const

// Its finished jobs are deleted, so whatever is there is unfinished.
const COUNT = 'select count(*) as jobs from graphile_worker._private_jobs'

const openUtils = async (url: string, connections: number): Promise<WorkerUtils> => {
  const { Logger, makeWorkerUtils } = await loadPeer<GraphileWorker>('graphile-worker')
  const logger = new Logger(() => () => {})
  // Two is the least that it takes; one after the other, only one of them is ever used.
  return makeWorkerUtils({ connectionString: url, maxPoolSize: Math.max(2, connections), logger })
}
