import { createRoute, z } from '@hono/zod-openapi'
import { requireAuth } from '../auth/require-auth.ts'
import { holdOf } from '../http/background.ts'
import { BATCH_LIMITS, jsonBody } from '../http/json-body.ts'
import { jsonContent, jsonRequest, problems, SECURITY } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { viewJob } from './job-view.ts'
import { newBatch, newJob } from './new-job.ts'
import { job } from './schemas.ts'
import { submitAll } from './submission.ts'

export const submitRoutes = () =>
  createRouter()
    .openapi(submitRoute, async (c) => {
      const context = { pathOf: () => [], hold: holdOf(c) }
      const rows = await submitAll(c.get('services'), c.get('principal'), [c.req.valid('json')], context)
      const [submitted] = rows.map(viewJob)
      if (!submitted) throw new Error('One job was sent and none came back')
      return c.json(submitted, 201, { location: `/jobs/${submitted.id}` })
    })
    .openapi(batchRoute, async (c) => {
      const { jobs } = c.req.valid('json')
      const context = { pathOf: (i: number) => ['jobs', i], hold: holdOf(c) }
      const rows = await submitAll(c.get('services'), c.get('principal'), jobs, context)
      return c.json({ jobs: rows.map(viewJob) }, 201)
    })

const refusals = problems(
  'malformed-body',
  'unauthenticated',
  'body-too-large',
  'unsupported-media-type',
  'invalid-request',
  'unknown-job-type',
  'unknown-dependency',
  'failed-dependency',
)

const submitRoute = createRoute({
  method: 'post',
  path: '/jobs',
  tags: ['jobs'],
  summary: 'Submit a job',
  description: 'Answered once the job is committed.',
  security: SECURITY,
  middleware: [requireAuth(), jsonBody()],
  request: { body: jsonRequest(newJob) },
  responses: { 201: jsonContent(job, 'The job, queued'), ...refusals },
})

const batchRoute = createRoute({
  method: 'post',
  path: '/jobs/batch',
  tags: ['jobs'],
  summary: 'Submit many jobs, all or none',
  description:
    'Up to 1,000 jobs and 5 MiB, committed together. Jobs may depend on each other: `"depends_on": ["ref:extract"]` ' +
    'means the job of the batch with `"ref": "extract"`.',
  security: SECURITY,
  middleware: [requireAuth(), jsonBody(BATCH_LIMITS)],
  request: { body: jsonRequest(newBatch) },
  responses: {
    201: jsonContent(z.object({ jobs: z.array(job) }), 'The jobs in the order in which they were sent'),
    ...refusals,
    ...problems(
      'invalid-request',
      'unknown-job-type',
      'unknown-dependency',
      'failed-dependency',
      'dependency-cycle',
    ),
  },
})
