import { createRoute } from '@hono/zod-openapi'
import { afterCommit } from '../database-errors.ts'
import { holdOf } from '../http/background.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { cancelJob } from './cancellation.ts'
import { viewJob } from './job-view.ts'
import { accessToJob } from './of-job.ts'
import { retryJob } from './retries.ts'
import { job } from './schemas.ts'
import { showJob } from './show-job.ts'

export const changeRoutes = () =>
  createRouter()
    .openapi(cancelRoute, async (c) => {
      const { id } = c.req.valid('param')
      const row = await cancelJob(c.get('run'), c.get('principal').org_id, id, holdOf(c))
      return c.json(viewJob(row, null), 200)
    })
    .openapi(retryRoute, async (c) => {
      const { id } = c.req.valid('param')
      await retryJob(c.get('run'), c.get('principal').org_id, id, holdOf(c))
      return c.json(await afterCommit(showJob(c, id)), 200)
    })

const cancelRoute = createRoute({
  method: 'patch',
  path: '/jobs/{id}/cancel',
  tags: ['jobs'],
  summary: 'Cancel a job',
  description:
    'Of a job that has not finished, whatever its state; a running handler sees its `AbortSignal` within a second. ' +
    'Jobs that depend on it fail, or wait until it was retried, as their `on_parent_failure` says. ' +
    'A job that is cancelled already stays so.',
  ...accessToJob('jobs:manage'),
  request: { params: pathId },
  responses: {
    200: jsonContent(job, 'The job, cancelled'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'already-finished'),
  },
})

const retryRoute = createRoute({
  method: 'post',
  path: '/jobs/{id}/retry',
  tags: ['jobs'],
  summary: 'Retry a failed or cancelled job',
  description:
    'It goes back into the queue with all its attempts to spend again; those that it has made stay in its history. ' +
    'Before its `run_at` it is `pending`; while a job that it depends on has not completed it is `blocked`.',
  ...accessToJob('jobs:manage'),
  request: { params: pathId },
  responses: {
    200: jsonContent(job, 'The job, queued again'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'not-retryable', 'quota-exceeded'),
  },
})
