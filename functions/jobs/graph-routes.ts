import { createRoute, z } from '@hono/zod-openapi'
import { type GraphRow, getJobGraph } from '../../db/queries/job-graph.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { noSuchJob } from './job-path.ts'
import { round } from './job-view.ts'
import { accessToJob } from './of-job.ts'

/** More than fits on a screen. */
const MAX_NODES = 200

export const graphRoutes = () =>
  createRouter().openapi(graphRoute, async (c) => {
    const { id } = c.req.valid('param')
    // The one too many says that there are more.
    const rows = await c.get('run')(getJobGraph(c.get('principal').org_id, id, MAX_NODES + 1))
    if (rows.length === 0) throw noSuchJob(id)
    return c.json(viewGraph(rows), 200)
  })

const viewGraph = (rows: GraphRow[]): z.output<typeof graph> => {
  const shown = rows.slice(0, MAX_NODES)
  const ids = new Set(shown.map(({ id }) => id))
  return {
    nodes: shown.map(viewNode),
    edges: shown.flatMap(({ id, parents }) =>
      parents.filter((parent) => ids.has(parent)).map((parent) => ({ from: parent, to: id })),
    ),
    truncated: rows.length > MAX_NODES,
  }
}

const viewNode = (row: GraphRow): z.output<typeof node> => ({
  id: row.id,
  name: row.name,
  type: row.type,
  status: row.status,
  attempts: row.attempts,
  prediction: { p50_ms: round(row.predicted_ms, 1), p90_ms: round(row.predicted_p90_ms, 1) },
})

const node = z.object({
  id: z.uuid(),
  name: z.string(),
  type: z.string(),
  status: z.enum(JOB_STATES),
  attempts: z.int(),
  prediction: z.object({ p50_ms: z.number(), p90_ms: z.number() }),
})

export const graph = z
  .object({
    nodes: z.array(node).openapi({ description: 'The job itself first, then those nearest to it.' }),
    edges: z.array(
      z.object({
        from: z.uuid().openapi({ description: 'The job that is waited for.' }),
        to: z.uuid().openapi({ description: 'The job that waits for it.' }),
      }),
    ),
    truncated: z.boolean().openapi({ description: 'There are more jobs than are shown.' }),
  })
  .openapi('JobGraph')

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
