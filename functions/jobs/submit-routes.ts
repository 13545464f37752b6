import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { access } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { BATCH_LIMITS, jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { keyOfBatch, keyOfRequest } from './idempotency.ts'
import { viewPromise } from './job-eta.ts'
import { viewJob } from './job-view.ts'
import { idempotencyKey, newBatch, newJob } from './new-job.ts'
import { job } from './schemas.ts'
import type { SubmittedRow } from './stored-job.ts'
import { submitAll } from './submission.ts'

export const submitRoutes = () =>
  createRouter()
    .openapi(submitRoute, async (c) => {
      const request = c.req.valid('json')
      const key = keyOfRequest(c.req.valid('header')['idempotency-key'], request.idempotency_key)
      const context = { pathOf: () => [], requestKey: key, ...contextOf(c) }
      const { rows, created } = await submitAll(c.get('services'), c.get('principal'), [request], context)
      const [submitted] = rows.map(viewSubmitted)
      if (!submitted) throw new Error('One job was sent and none came back')
      if (!created) return c.json(submitted, 200, REPLAYED)
      return c.json(submitted, 201, { location: `/jobs/${submitted.id}` })
    })
    .openapi(batchRoute, async (c) => {
      const { jobs } = c.req.valid('json')
      const key = keyOfBatch(c.req.valid('header')['idempotency-key'], jobs)
      const context = { pathOf: (i: number) => ['jobs', i], requestKey: key, ...contextOf(c) }
      const { rows, created } = await submitAll(c.get('services'), c.get('principal'), jobs, context)
      const body = { jobs: rows.map(viewSubmitted) }
      return created ? c.json(body, 201) : c.json(body, 200, REPLAYED)
    })

const contextOf = (c: Context<AppEnv>) => ({ run: c.get('run'), hold: holdOf(c), trace: c.get('trace') })

const viewSubmitted = (row: SubmittedRow) => viewJob(row, viewPromise(row))

const REPLAYED = { 'idempotent-replayed': 'true' }

const headers = z.object({
  'idempotency-key': idempotencyKey.optional().openapi({
    description:
      'Makes it safe to send the request again: within 24 hours the same key with the same body answers what was ' +
      'submitted first, with 200; with another body it is refused.',
  }),
  // Not checked: one that is none is no reason to refuse a job.
  traceparent: z.string().optional().openapi({
    description:
      'Where a trace goes on, as W3C Trace Context writes it. Kept with the job; its execution is part of the trace.',
    example: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  }),
})

const refusals = problems(
  ...BODY_PROBLEMS,
  'unauthenticated',
  'forbidden',
  'unknown-job-type',
  'unknown-dependency',
  'failed-dependency',
  'idempotency-key-reused',
  'quota-exceeded',
)

const jobs = z.object({ jobs: z.array(job) })

const submitRoute = createRoute({
  method: 'post',
  path: '/jobs',
  tags: ['jobs'],
  summary: 'Submit a job',
  description: 'Answered once the job is committed.',
  ...access('jobs:submit', jsonBody()),
  request: { headers, body: jsonRequest(newJob) },
  responses: {
    200: jsonContent(job, 'The job that was submitted first under this idempotency key, as it was then'),
    201: jsonContent(job, 'The job, queued'),
    ...refusals,
  },
})

const batchRoute = createRoute({
  method: 'post',
  path: '/jobs/batch',
  tags: ['jobs'],
  summary: 'Submit many jobs, all or none',
  description:
    'Up to 1,000 jobs and 5 MiB, committed together. Jobs may depend on each other: `"depends_on": ["ref:extract"]` ' +
    'means the job of the batch with `"ref": "extract"`.',
  ...access('jobs:submit', jsonBody(BATCH_LIMITS)),
  request: { headers, body: jsonRequest(newBatch) },
  responses: {
    200: jsonContent(jobs, 'All of them were submitted before, under the same idempotency keys'),
    201: jsonContent(jobs, 'The jobs in the order in which they were sent'),
    ...refusals,
    ...problems(
      'invalid-request',
      'unknown-job-type',
      'unknown-dependency',
      'failed-dependency',
      'dependency-cycle',
      'idempotency-key-reused',
    ),
  },
})
