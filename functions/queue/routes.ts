import { createRoute, type z } from '@hono/zod-openapi'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { listPauses, pauseQueue, resumeQueue } from '../../db/queries/pauses.ts'
import type { Run } from '../../db/query.ts'
import { access } from '../auth/permit.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { logFailure } from '../http/log.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { pauseRequest, queue } from './schemas.ts'

export const queueRoutes = () =>
  createRouter()
    .openapi(getRoute, async (c) => c.json(await look(c.get('run'), c.get('principal').org_id), 200))
    .openapi(pauseRoute, async (c) => {
      const run = c.get('run')
      const { org_id } = c.get('principal')
      await run(pauseQueue(org_id, c.req.valid('json').type ?? null))
      return c.json(await look(run, org_id), 200)
    })
    .openapi(resumeRoute, async (c) => {
      const run = c.get('run')
      const { org_id } = c.get('principal')
      const rows = await run(resumeQueue(org_id, c.req.valid('json').type ?? null))
      const types = rows.map(({ type }) => type)
      if (types.length > 0) holdOf(c)(run(notify(JOBS_READY, types)).catch(logFailure))
      return c.json(await look(run, org_id), 200)
    })

const look = async (run: Run, orgId: string): Promise<z.output<typeof queue>> => {
  const types = (await run(listPauses(orgId))).map(({ type }) => type)
  return { paused: types.includes(null), paused_types: types.filter((type) => type !== null) }
}

const refusals = problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden')

const getRoute = createRoute({
  method: 'get',
  path: '/queue',
  tags: ['queue'],
  summary: 'See what is paused',
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
    'Ends the pause of one type, or with `{}` that of the whole queue; types that were paused by themselves stay so.',
  ...access('queue:manage', jsonBody()),
  request: { body: jsonRequest(pauseRequest) },
  responses: { 200: jsonContent(queue, 'The queue, resumed'), ...refusals },
})
