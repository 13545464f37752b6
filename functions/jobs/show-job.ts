import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { type ReadJob, readJobs, withIsoTimes } from '../../db/queries/job-facts.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { etaOf } from './job-eta.ts'
import { noSuchJob } from './job-path.ts'
import { viewJob } from './job-view.ts'
import type { job as jobSchema } from './schemas.ts'

/** Jobs ahead that are counted for an ETA. If there are more, their number is estimated from the queue's sums. */
const COUNTED = 50

const NOBODY = { workers: [], queue: undefined }

/** The job and its ETA, in one round trip. Usually the queue is already cached in the isolate. */
export const showJob = async (c: Context<AppEnv>, id: string): Promise<z.output<typeof jobSchema>> => {
  const { org_id: orgId, secret } = c.get('principal')
  const { queues, reads } = c.get('services')
  const run = c.get('run')
  const hold = holdOf(c)
  const send = async (ids: readonly string[]): Promise<ReadJob[]> => {
    const found = await run(readJobs(orgId, ids, { most: COUNTED, withQueue: !queues.isFresh(orgId) }))
    const [first] = found
    if (first?.workers) queues.keep(orgId, { workers: first.workers, queue: first.queue }, run, hold)
    return found
  }
  // The secret identifies one session or API key.
  const found = await reads.read(`${orgId} ${secret}`, id, send, hold)
  if (!found) throw noSuchJob(id)
  const { job, place } = withIsoTimes(found)
  return viewJob(job, etaOf(job, place, queues.stored(orgId) ?? NOBODY))
}
