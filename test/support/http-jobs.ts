import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import type { TestDatabase } from './database.ts'
import { newJob, seedJobs, type Tenant, watchJobs } from './jobs.ts'
import type { Target } from './target.ts'
import { waitFor } from './wait-for.ts'

/** Jobs for real workers: they call `target`, and are watched in the database. */
export const httpJobs = (database: TestDatabase, tenant: Tenant, target: Target) => ({
  ...watchJobs(database.sql),
  submit: async (path: string, overrides: Parameters<typeof newJob>[0] = {}): Promise<string> => {
    const job = newJob({ type: 'http', payload: { url: `${target.url}${path}` }, ...overrides })
    await seedJobs(database.run, tenant, [job])
    await database.run(notify(JOBS_READY, ['http']))
    return job.id
  },
  untilArrived: (path: string, times = 1) =>
    waitFor(
      `${times} requests for ${path}`,
      () => target.arrived.filter((seen) => seen === path).length >= times,
    ),
})
