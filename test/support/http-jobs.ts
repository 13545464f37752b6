import assert from 'node:assert/strict'
import { getJob, type JobRow } from '../../db/queries/jobs.ts'
import type { TestDatabase } from './database.ts'
import { newJob, seedJobs, type Tenant } from './jobs.ts'
import type { Target } from './target.ts'
import { waitFor } from './wait-for.ts'

/** Jobs for real workers: they call `target`, and are watched in the database. */
export const httpJobs = (database: TestDatabase, tenant: Tenant, target: Target) => {
  const look = async (id: string): Promise<JobRow> => {
    const [job] = await database.run(getJob(tenant.orgId, id))
    assert.ok(job)
    return job
  }
  return {
    look,
    submit: async (path: string, overrides: Parameters<typeof newJob>[0] = {}): Promise<string> => {
      const job = newJob({ type: 'http', payload: { url: `${target.url}${path}` }, ...overrides })
      await seedJobs(database.run, tenant, [job])
      return job.id
    },
    untilStatus: (id: string, status: string): Promise<JobRow> =>
      waitFor(`job ${status}`, async () => {
        const job = await look(id)
        return job.status === status && job
      }),
    untilArrived: (path: string, times = 1) =>
      waitFor(
        `${times} requests for ${path}`,
        () => target.arrived.filter((seen) => seen === path).length >= times,
      ),
  }
}
