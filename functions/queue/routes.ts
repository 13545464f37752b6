import { createRoute, type z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { pauseQueue, resumeQueue } from '../../db/queries/pauses.ts'
import { getQueue, listOrgQueues } from '../../db/queries/queue-facts.ts'
import { access, enterAs } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { logFailure } from '../http/log.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { pauseRequest, queue } from './schemas.ts'
import { viewOrgQueue, viewShare } from './views.ts'

export const queueRoutes = () =>
  createRouter()
    .openapi(getRoute, async (c) => c.json(await look(c), 200))
    .openapi(pauseRoute, async (c) => {
      await c.get('run')(pauseQueue(c.get('principal').org_id, c.req.valid('json').type ?? null))
      return c.json(await look(c), 200)
    })
    .openapi(resumeRoute, async (c) => {
      const run = c.get('run')
      const { org_id } = c.get('principal')
      const rows = await run(resumeQueue(org_id, c.req.valid('json').type ?? null))
      const types = rows.map(({ type }) => type)
      if (types.length > 0) holdOf(c)(run(notify(JOBS_READY, types)).catch(logFailure))
      return c.json(await look(c), 200)
    })

/** More would fill a page, and nobody reads that far. */
const MOST_ORGS = 100

const look = async (c: Context<AppEnv>): Promise<z.output<typeof queue>> => {
  const { org_id, role } = c.get('principal')
  const [row] = await c.get('run')(getQueue(org_id))
  const types = row?.paused_types ?? []
  const answer = {
    paused: types.includes(null),
    paused_types: types.filter((type) => type !== null),
    share: row?.queue ? viewShare(row.queue) : null,
  }
  if (role !== 'admin') return answer
  const orgs = await enterAs(c, { leastRole: 'admin', allOrgs: true })(listOrgQueues(MOST_ORGS))
  return { ...answer, organisations: orgs.map(viewOrgQueue) }
}

const refusals = problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden')

const getRoute = createRoute({
  method: 'get',
  path: '/queue',
  tags: ['queue'],
  summary: 'See what is paused, and the share of the workers',
  description:
    'Organisations share the time of the workers by weight. An admin is also told the numbers of each organisation.',
  ...access('jobs:read'),
  responses: {
    200: jsonContent(queue, 'The queue of the organisation'),
    ...problems('unauthenticated', 'forbidden'),
  },
})

const pauseRoute = createRoute({
  method: 'post',
  path: '/queue/pause',
  tags: ['queue'],
  summary: 'Stop starting jobs',
  description: 'Jobs are still accepted, and those that run go on. Send `{}` to pause all types.',
  ...access('queue:manage', jsonBody()),
  request: { body: jsonRequest(pauseRequest) },
  responses: { 200: jsonContent(queue, 'The queue, paused'), ...refusals },
})

const resumeRoute = createRoute({
  method: 'post',
  path: '/queue/resume',
  tags: ['queue'],
  summary: 'Start jobs again',
  description:
    'Ends the pause of one type, or with `{}` that of the whole queue; types that were paused individually stay paused.',
  ...access('queue:manage', jsonBody()),
  request: { body: jsonRequest(pauseRequest) },
  responses: { 200: jsonContent(queue, 'The queue, resumed'), ...refusals },
})
