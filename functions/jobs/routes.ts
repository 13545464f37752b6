import { createRoute, z } from '@hono/zod-openapi'
import { type JobLogRow, listJobLogs } from '../../db/queries/job-logs.ts'
import { getJob, listJobs } from '../../db/queries/jobs.ts'
import { requireAuth } from '../auth/require-auth.ts'
import { jsonBody } from '../http/json-body.ts'
import { jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { viewJob, viewSummary } from './job-view.ts'
import { job, jobSummary, logLine, newJob } from './schemas.ts'
import { submitJob } from './submission.ts'

export const jobRoutes = () =>
  createRouter()
    .openapi(submitRoute, async (c) => {
      const row = await submitJob(c.get('services'), c.get('principal'), c.req.valid('json'))
      return c.json(viewJob(row), 201, { location: `/jobs/${row.id}` })
    })
    .openapi(listRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const orgId = c.get('principal').org_id
      const rows = await c.get('services').run(listJobs({ orgId, before: cursor ?? null, limit: limit + 1 }))
      return c.json(toPage(rows, limit, { position: (row) => row.id, item: viewSummary }), 200)
    })
    .openapi(getRoute, async (c) => {
      const { id } = c.req.valid('param')
      const [row] = await c.get('services').run(getJob(c.get('principal').org_id, id))
      if (!row) throw noSuchJob(id)
      return c.json(viewJob(row), 200)
    })
    .openapi(logsRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { cursor, limit } = c.req.valid('query')
      const orgId = c.get('principal').org_id
      const page = { orgId, jobId: id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('services').run(listJobLogs(page))
      if (rows.length === 0) throw noSuchJob(id)
      return c.json(toPage(rows.filter(isLine), limit, { position: (row) => row.id, item: viewLine }), 200)
    })

const security = [{ bearer: [] }]
const jobPath = z.object({ id: z.uuid().openapi({ param: { name: 'id', in: 'path' } }) })

const submitRoute = createRoute({
  method: 'post',
  path: '/jobs',
  tags: ['jobs'],
  summary: 'Submit a job',
  description: 'Answered once the job is committed.',
  security,
  middleware: [requireAuth(), jsonBody()],
  request: { body: jsonRequest(newJob) },
  responses: {
    201: jsonContent(job, 'The job, queued'),
    ...problems(
      'malformed-body',
      'unauthenticated',
      'body-too-large',
      'unsupported-media-type',
      'invalid-request',
      'unknown-job-type',
    ),
  },
})

const listRoute = createRoute({
  method: 'get',
  path: '/jobs',
  tags: ['jobs'],
  summary: 'List jobs, newest first',
  security,
  middleware: requireAuth(),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(jobSummary), 'A page of jobs, without payloads and results'),
    ...problems('unauthenticated', 'invalid-request'),
  },
})

const getRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}',
  tags: ['jobs'],
  summary: 'Look at one job',
  security,
  middleware: requireAuth(),
  request: { params: jobPath },
  responses: { 200: jsonContent(job, 'The job'), ...problems('unauthenticated', 'not-found') },
})

const logsRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/logs',
  tags: ['jobs'],
  summary: "Read a job's log, oldest line first",
  security,
  middleware: requireAuth(),
  request: { params: jobPath, query: pageQuery(z.string().regex(/^\d{1,18}$/)) },
  responses: {
    200: jsonContent(pageOf(logLine), 'A page of log lines'),
    ...problems('unauthenticated', 'not-found', 'invalid-request'),
  },
})

const noSuchJob = (id: string): ProblemError =>
  new ProblemError('not-found', `There is no job ${id} in this organisation.`)

type StoredLine = JobLogRow & { id: string }
const isLine = (row: JobLogRow): row is StoredLine => row.id !== null

const viewLine = (row: StoredLine): z.output<typeof logLine> => ({
  at: row.at.toISOString(),
  level: row.level,
  message: row.message,
  attempt: row.attempt,
})
