import { loadPeer } from '../peers/load.ts'
import { type Contender, JOB_TYPE, PAYLOAD, type QueueClient } from './contender.ts'

/** The part of the API that is used here. */
type BullMq = { Queue: new (name: string, options: object) => Queue }
type Queue = {
  waitUntilReady(): Promise<unknown>
  add(name: string, data: object): Promise<unknown>
  addBulk(jobs: { name: string; data: object }[]): Promise<unknown>
  getJobCountByTypes(...types: string[]): Promise<number>
  close(): Promise<void>
}

/** Finished jobs are removed, as its documentation advises for production: Redis keeps everything in memory. */
const JOB_OPTIONS = { removeOnComplete: true, removeOnFail: true }

/** On Redis: how much durability and one system less cost, rather than a rival for the same job. */
export const bullmq = (): Contender => ({
  key: 'bullmq',
  name: 'BullMQ',
  about: '6, Redis with appendfsync everysec, 50 jobs at a time',
  store: 'redis',
  // A round trip and two scripts a job: half of the jobs takes as long as all of them with batches.
  share: 0.5,
  worker: { file: new URL('./bullmq-worker.ts', import.meta.url) },
  // Nothing to install: its scripts are sent when they are first used.
  prepare: async () => {},
  // One connection for all: commands are pipelined, more connections make it no faster.
  open: async (url): Promise<QueueClient> => {
    const { Queue } = await loadPeer<BullMq>('bullmq')
    const queue = new Queue(JOB_TYPE, { connection: { url }, defaultJobOptions: JOB_OPTIONS })
    await queue.waitUntilReady()
    return {
      add: () => queue.add(JOB_TYPE, PAYLOAD),
      addMany: (count) =>
        queue.addBulk(Array.from({ length: count }, () => ({ name: JOB_TYPE, data: PAYLOAD }))),
      unfinished: () => queue.getJobCountByTypes('waiting', 'active', 'delayed', 'prioritized'),
      close: () => queue.close(),
    }
  },
})
