import { createRoute, z } from '@hono/zod-openapi'
import { listJobs } from '../../db/queries/job-list.ts'
import { type JobLogRow, listJobLogs } from '../../db/queries/job-logs.ts'
import { getJob } from '../../db/queries/jobs.ts'
import { requireAuth } from '../auth/require-auth.ts'
import { jsonContent, problems, SECURITY } from '../http/openapi.ts'
import { pageFields, pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { FINGERPRINT_RULE, filterFields, fitsFingerprint, toJobFilter } from './filter.ts'
import { jobPath, noSuchJob } from './job-path.ts'
import { viewJob, viewSummary } from './job-view.ts'
import { job, jobSummary, logLine } from './schemas.ts'

export const readRoutes = () =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { cursor, limit, ...filter } = c.req.valid('query')
      const page = { orgId: c.get('principal').org_id, before: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('services').run(listJobs({ ...page, filter: toJobFilter(filter) }))
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

const listQuery = z
  .strictObject({ ...filterFields, ...pageFields(z.uuid()) })
  .refine(fitsFingerprint, FINGERPRINT_RULE)

const listRoute = createRoute({
  method: 'get',
  path: '/jobs',
  tags: ['jobs'],
  summary: 'List jobs, newest first',
  description: 'Of several filters all must hold.',
  security: SECURITY,
  middleware: requireAuth(),
  request: { query: listQuery },
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
  security: SECURITY,
  middleware: requireAuth(),
  request: { params: jobPath },
  responses: { 200: jsonContent(job, 'The job'), ...problems('unauthenticated', 'not-found') },
})

const logsRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/logs',
  tags: ['jobs'],
  summary: "Read a job's log, oldest line first",
  security: SECURITY,
  middleware: requireAuth(),
  request: { params: jobPath, query: pageQuery(z.string().regex(/^\d{1,18}$/)) },
  responses: {
    200: jsonContent(pageOf(logLine), 'A page of log lines'),
    ...problems('unauthenticated', 'not-found', 'invalid-request'),
  },
})

type StoredLine = JobLogRow & { id: string }
const isLine = (row: JobLogRow): row is StoredLine => row.id !== null

const viewLine = (row: StoredLine): z.output<typeof logLine> => ({
  at: row.at.toISOString(),
  level: row.level,
  message: row.message,
  attempt: row.attempt,
})
