import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { readJob } from '../../db/queries/job-facts.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { etaOf } from './job-eta.ts'
import { noSuchJob } from './job-path.ts'
import { viewJob } from './job-view.ts'
import type { job } from './schemas.ts'

/** Jobs ahead that are counted for an ETA. If there are more, sums of the queue tell how many. */
const COUNTED = 50

const NOBODY = { workers: [], queue: undefined }

/** The job and its ETA, in one round trip. Most requests find the queue in the isolate, as it was less than a second ago. */
export const showJob = async (c: Context<AppEnv>, id: string): Promise<z.output<typeof job>> => {
  const { org_id: orgId } = c.get('principal')
  const { queues } = c.get('services')
  const run = c.get('run')
  const [row] = await run(readJob(orgId, id, { most: COUNTED, withQueue: !queues.isFresh(orgId) }))
  if (!row) throw noSuchJob(id)
  const { workers, queue } = row
  if (workers) queues.keep(orgId, { workers, queue }, run, holdOf(c))
  return viewJob(row, etaOf(row, row, queues.stored(orgId) ?? NOBODY))
}
