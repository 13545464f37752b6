import { createRoute } from '@hono/zod-openapi'
import { getJobGraph } from '../../db/queries/job-graph.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { graph, MAX_NODES, viewGraph } from './job-graph.ts'
import { noSuchJob } from './job-path.ts'
import { accessToJob } from './of-job.ts'

export const graphRoutes = () =>
  createRouter().openapi(graphRoute, async (c) => {
    const { id } = c.req.valid('param')
    // The one too many says that there are more.
    const rows = await c.get('run')(getJobGraph(c.get('principal').org_id, id, MAX_NODES + 1))
    if (rows.length === 0) throw noSuchJob(id)
    return c.json(viewGraph(rows), 200)
  })

const graphRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/graph',
  tags: ['jobs'],
  summary: 'See how a job hangs together with others',
  description: `All jobs that it is connected with by dependencies, in both directions, at most ${MAX_NODES}.`,
  ...accessToJob('jobs:read'),
  request: { params: pathId },
  responses: {
    200: jsonContent(graph, 'The graph'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
