import { createRoute, z } from '@hono/zod-openapi'
import { listJobTypes } from '../../db/queries/job-types.ts'
import { getLeader, listWorkers } from '../../db/queries/registry.ts'
import { access, enterAs } from '../auth/permit.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { jobType, leader, viewLeader, viewWorker, worker } from './registry-view.ts'

/** Who works, at what, and who leads. Before the routes with an id, which would take `workers` for one. */
export const registryRoutes = () =>
  createRouter()
    .openapi(workersRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { after: cursor ?? null, limit: limit + 1 }
      const { role, org_id } = c.get('principal')
      const rows =
        role === 'admin'
          ? await enterAs(c, { leastRole: 'admin' })(listWorkers(null, page))
          : await c.get('run')(listWorkers(org_id, page))
      return c.json(toPage(rows, limit, { position: (row) => row.worker_id, item: viewWorker }), 200)
    })
    .openapi(typesRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const rows = await c.get('run')(listJobTypes({ after: cursor ?? null, limit: limit + 1 }))
      return c.json(toPage(rows, limit, { position: ({ type }) => type, item: (row) => row }), 200)
    })
    .openapi(leaderRoute, async (c) => {
      const [row] = await c.get('run')(getLeader())
      if (!row) throw new ProblemError('not-found', 'No worker has been elected leader yet.')
      return c.json(viewLeader(row), 200)
    })

const workersRoute = createRoute({
  method: 'get',
  path: '/jobs/workers',
  tags: ['jobs'],
  summary: 'List the workers',
  description:
    'Workers serve all organisations. You see how many of your own jobs run on each; hosts, and totals across all ' +
    'organisations, are visible to admins only.',
  ...access('jobs:read'),
  request: { query: pageQuery(z.string().regex(/^[\w.-]+$/)) },
  responses: {
    200: jsonContent(pageOf(worker), 'A page of workers, in the order of their ids'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const typesRoute = createRoute({
  method: 'get',
  path: '/jobs/types',
  tags: ['jobs'],
  summary: 'List the types of jobs',
  description: 'Those that a worker has announced, now or before, and that can be submitted.',
  ...access('jobs:read'),
  request: { query: pageQuery(z.string().regex(/^[\w.-]+$/)) },
  responses: {
    200: jsonContent(pageOf(jobType), 'A page of types, in the order of their names'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const leaderRoute = createRoute({
  method: 'get',
  path: '/jobs/scheduler/leader',
  tags: ['jobs'],
  summary: 'See which worker leads',
  description:
    'The leader wakes delayed jobs and takes jobs from workers that have died. Of the newest term, alive or not.',
  ...access('jobs:read'),
  responses: {
    200: jsonContent(leader, 'The leader'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
