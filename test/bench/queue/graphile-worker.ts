import { loadPeer } from '../peers/load.ts'
import { JOB_TYPE } from './contender.ts'
import { BATCHED, CONCURRENT_JOBS, POOL_SIZE } from './graphile-options.ts'
import { runWorker } from './worker-side.ts'

type GraphileWorker = {
  Logger: new (factory: () => (level: string, message: string) => void) => unknown
  run(options: object): Promise<unknown>
}

runWorker(async (url, handle) => {
  const { Logger, run } = await loadPeer<GraphileWorker>('graphile-worker')
  const logger = new Logger(() => (level, message) => {
    if (level === 'error') console.error(message)
  })
  await run({
    taskList: { [JOB_TYPE]: () => handle() },
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: CONCURRENT_JOBS,
        maxPoolSize: POOL_SIZE,
        logger,
        ...(process.env.BENCH_BATCHED && BATCHED),
      },
    },
  })
})
