import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { readJob, withIsoTimes } from '../../db/queries/job-facts.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { etaOf } from './job-eta.ts'
import { noSuchJob } from './job-path.ts'
import { viewJob } from './job-view.ts'
import type { job as jobSchema } from './schemas.ts'

/** Jobs ahead that are counted for an ETA. If there are more, sums of the queue tell how many. */
const COUNTED = 50

const NOBODY = { workers: [], queue: undefined }

/** The job and its ETA, in one round trip. Most requests find the queue in the isolate, as it was less than a second ago. */
export const showJob = async (c: Context<AppEnv>, id: string): Promise<z.output<typeof jobSchema>> => {
  const { org_id: orgId } = c.get('principal')
  const { queues } = c.get('services')
  const run = c.get('run')
  const [found] = await run(readJob(orgId, id, { most: COUNTED, withQueue: !queues.isFresh(orgId) }))
  if (!found) throw noSuchJob(id)
  const { job, place, workers, queue } = withIsoTimes(found)
  if (workers) queues.keep(orgId, { workers, queue }, run, holdOf(c))
  return viewJob(job, etaOf(job, place, queues.stored(orgId) ?? NOBODY))
}
