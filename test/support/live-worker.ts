import { reportWorker } from '../../db/queries/workers.ts'
import type { Run } from '../../db/query.ts'

type Report = Parameters<typeof reportWorker>[0]

/** A worker in the registry, alive for the next ten seconds; nothing runs. */
export const reportLive = async (run: Run, overrides: Partial<Report> = {}): Promise<void> => {
  const worker = {
    workerId: 'worker-1',
    hostname: 'host',
    status: 'online' as const,
    types: ['test'],
    slots: 1,
    cpuUnits: 2,
    memoryMb: 512,
    running: 0,
    jobsProcessed: 0,
  }
  await run(reportWorker({ ...worker, ...overrides }))
}
