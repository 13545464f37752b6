import { loadPeer } from '../peers/load.ts'
import { JOB_TYPE } from './contender.ts'
import { runWorker } from './worker-side.ts'

type BullMq = {
  Worker: new (
    name: string,
    handler: () => Promise<unknown>,
    options: object,
  ) => { waitUntilReady(): Promise<unknown>; on(event: 'error', listener: (error: Error) => void): void }
}

// 100 and 200 are no faster, with one worker or with four.
const CONCURRENCY = 50

runWorker(async (url, handle) => {
  const { Worker } = await loadPeer<BullMq>('bullmq')
  const worker = new Worker(JOB_TYPE, async () => handle(), {
    connection: { url, maxRetriesPerRequest: null },
    concurrency: CONCURRENCY,
  })
  worker.on('error', console.error)
  await worker.waitUntilReady()
})
