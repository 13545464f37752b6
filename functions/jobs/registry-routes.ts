import { createRoute, z } from '@hono/zod-openapi'
import { listKnownTypes } from '../../db/queries/job-types.ts'
import { getLeader, listWorkers, type WorkerRow } from '../../db/queries/registry.ts'
import { access } from '../auth/permit.ts'
import { jsonContent, problems, timestamp } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'

/** Who works, at what, and who leads. Before the routes with an id, which would take `workers` for one. */
export const registryRoutes = () =>
  createRouter()
    .openapi(workersRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const rows = await c.get('run')(listWorkers({ after: cursor ?? null, limit: limit + 1 }))
      return c.json(toPage(rows, limit, { position: (row) => row.worker_id, item: viewWorker }), 200)
    })
    .openapi(typesRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const rows = await c.get('run')(listKnownTypes({ after: cursor ?? null, limit: limit + 1 }))
      return c.json(toPage(rows, limit, { position: ({ type }) => type, item: (row) => row }), 200)
    })
    .openapi(leaderRoute, async (c) => {
      const [row] = await c.get('run')(getLeader())
      if (!row) throw new ProblemError('not-found', 'No worker has been elected leader yet.')
      const leader = {
        worker_id: row.worker_id,
        term: Number(row.term),
        elected_at: row.elected_at.toISOString(),
        last_seen: row.last_seen.toISOString(),
      }
      return c.json(leader, 200)
    })

const worker = z
  .object({
    worker_id: z.string(),
    hostname: z.string(),
    status: z.enum(['online', 'draining', 'offline']).openapi({
      description: '`draining`: finishes its jobs and stops. `offline`: not seen for 10 s, or stopped.',
    }),
    last_seen: timestamp,
    started_at: timestamp,
    jobs_processed: z.int(),
    running: z.int(),
    slots: z.int(),
    cpu_units: z.number(),
    memory_mb: z.int(),
    types: z.array(z.string()).openapi({ description: 'The types of jobs that it handles.' }),
  })
  .openapi('Worker')

const viewWorker = (row: WorkerRow): z.output<typeof worker> => ({
  worker_id: row.worker_id,
  hostname: row.hostname,
  status: row.status,
  last_seen: row.last_seen.toISOString(),
  started_at: row.started_at.toISOString(),
  jobs_processed: Number(row.jobs_processed),
  running: row.running,
  slots: row.slots,
  cpu_units: row.cpu_units,
  memory_mb: row.memory_mb,
  types: row.types,
})

export const jobType = z
  .object({
    type: z.string(),
    payload_schema: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'JSON Schema of the payload, as its handler has it.' }),
    workers: z.int().openapi({ description: 'Online workers that handle it. None: its jobs wait for one.' }),
  })
  .openapi('JobType')

const leader = z
  .object({
    worker_id: z.string(),
    term: z.int().openapi({ description: 'Grows with each election.' }),
    elected_at: timestamp,
    last_seen: timestamp,
  })
  .openapi('Leader')

const workersRoute = createRoute({
  method: 'get',
  path: '/jobs/workers',
  tags: ['jobs'],
  summary: 'List the workers',
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
