import { createRoute, z } from '@hono/zod-openapi'
import { type AttemptRow, listAttempts } from '../../db/queries/attempts.ts'
import { type JobLogRow, listJobLogs } from '../../db/queries/job-logs.ts'
import type { JobSummaryRow } from '../../db/queries/jobs.ts'
import { type ListedJob, listJobs } from '../../db/queue/find-jobs.ts'
import { access, enterAs, seesAllOrgs } from '../auth/permit.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { encodeCursor, idPosition, pageFields, pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { FINGERPRINT_RULE, filterFields, fitsFingerprint, toJobFilter } from './filter.ts'
import { noSuchJob } from './job-path.ts'
import { viewSummary } from './job-view.ts'
import { accessToJob } from './of-job.ts'
import { attempt, job, jobSummary, logLine } from './schemas.ts'
import { showJob } from './show-job.ts'

export const readRoutes = () =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { cursor, limit, ...filter } = c.req.valid('query')
      const page = { before: cursor ?? null, limit, filter: toJobFilter(filter) }
      const rows = seesAllOrgs(c)
        ? await enterAs(c, { leastRole: 'admin', allOrgs: true })(listJobs({ ...page, orgId: null }))
        : await c.get('run')(listJobs({ ...page, orgId: c.get('principal').org_id }))
      const next = rows[0]?.next_id ?? null
      const items = rows.filter(isJob).map(viewSummary)
      return c.json({ items, next_cursor: next === null ? null : encodeCursor(next) }, 200)
    })
    .openapi(getRoute, async (c) => {
      const { id } = c.req.valid('param')
      return c.json(await showJob(c, id), 200)
    })
    .openapi(logsRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { cursor, limit } = c.req.valid('query')
      const orgId = c.get('principal').org_id
      const page = { orgId, jobId: id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listJobLogs(page))
      if (rows.length === 0) throw noSuchJob(id)
      return c.json(toPage(rows.filter(isLine), limit, { position: (row) => row.id, item: viewLine }), 200)
    })
    .openapi(attemptsRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { cursor, limit } = c.req.valid('query')
      const orgId = c.get('principal').org_id
      const page = { orgId, jobId: id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listAttempts(page))
      if (rows.length === 0) throw noSuchJob(id)
      return c.json(
        toPage(rows.filter(isAttempt), limit, { position: (row) => row.id, item: viewAttempt }),
        200,
      )
    })

const listQuery = z
  .strictObject({ ...filterFields, ...pageFields(z.uuid()) })
  .refine(fitsFingerprint, FINGERPRINT_RULE)

const listRoute = createRoute({
  method: 'get',
  path: '/jobs',
  tags: ['jobs'],
  summary: 'List jobs, newest first',
  description:
    'Of several filters all must hold. An admin sees the jobs of all organisations. ' +
    'A page may have fewer jobs than `limit`, or none, and still a `next_cursor`: the search goes on from there.',
  ...access('jobs:read'),
  request: { query: listQuery },
  responses: {
    200: jsonContent(pageOf(jobSummary), 'A page of jobs, without payloads and results'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const getRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}',
  tags: ['jobs'],
  summary: 'Look at one job',
  ...accessToJob('jobs:read'),
  request: { params: pathId },
  responses: { 200: jsonContent(job, 'The job'), ...problems('unauthenticated', 'forbidden', 'not-found') },
})

const logsRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/logs',
  tags: ['jobs'],
  summary: "Read a job's log, oldest line first",
  ...accessToJob('jobs:read'),
  request: { params: pathId, query: pageQuery(idPosition) },
  responses: {
    200: jsonContent(pageOf(logLine), 'A page of log lines'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'invalid-request'),
  },
})

const attemptsRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/attempts',
  tags: ['jobs'],
  summary: "Read a job's attempts, oldest first",
  description: 'Those of a job that was retried count from 1 again.',
  ...accessToJob('jobs:read'),
  request: { params: pathId, query: pageQuery(idPosition) },
  responses: {
    200: jsonContent(pageOf(attempt), 'A page of attempts'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'invalid-request'),
  },
})

const isJob = (row: ListedJob): row is ListedJob & JobSummaryRow => row.id !== null

type StoredLine = JobLogRow & { id: string }
const isLine = (row: JobLogRow): row is StoredLine => row.id !== null

const viewLine = (row: StoredLine): z.output<typeof logLine> => ({
  at: row.at,
  level: row.level,
  message: row.message,
  attempt: row.attempt,
})

type StoredAttempt = AttemptRow & { id: string }
const isAttempt = (row: AttemptRow): row is StoredAttempt => row.id !== null

const viewAttempt = (row: StoredAttempt): z.output<typeof attempt> => ({
  attempt: row.attempt,
  outcome: row.outcome,
  error: row.error,
  worker_id: row.worker_id,
  started_at: row.started_at,
  finished_at: row.finished_at,
  runtime_ms: row.runtime_ms === null ? null : Math.round(row.runtime_ms),
})
