import { createRoute, z } from '@hono/zod-openapi'
import { type JobCallbackRow, listJobCallbacks } from '../../db/queries/callback-job.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { noSuchJob } from '../jobs/job-path.ts'
import { accessToJob } from '../jobs/of-job.ts'
import { jobCallback } from './schemas.ts'

export const jobCallbackRoutes = () =>
  createRouter().openapi(listRoute, async (c) => {
    const { id } = c.req.valid('param')
    const { cursor, limit } = c.req.valid('query')
    const orgId = c.get('principal').org_id
    const page = { orgId, jobId: id, after: cursor ?? null, limit: limit + 1 }
    const rows = await c.get('run')(listJobCallbacks(page))
    if (rows.length === 0) throw noSuchJob(id)
    return c.json(
      toPage(rows.filter(isCallback), limit, { position: (row) => row.id, item: viewCallback }),
      200,
    )
  })

type StoredCallback = JobCallbackRow & { id: string }
const isCallback = (row: JobCallbackRow): row is StoredCallback => row.id !== null

const viewCallback = (row: StoredCallback): z.output<typeof jobCallback> => ({
  id: row.id,
  event: row.event,
  host: URL.parse(row.url)?.host ?? '',
  status: row.status,
  attempts: row.attempts,
  error: row.error,
  created_at: row.created_at,
  finished_at: row.finished_at,
})

const listRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/callbacks',
  tags: ['callbacks'],
  summary: 'See who was told of the end of a job',
  description:
    'The jobs that tell, oldest first. GET /jobs/{id} and GET /jobs/{id}/attempts have more of each.',
  ...accessToJob('jobs:read'),
  request: { params: pathId, query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(jobCallback), 'A page of callbacks'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'invalid-request'),
  },
})
