import { createRoute, z } from '@hono/zod-openapi'
import { listTicks } from '../../db/queries/schedule-ticks.ts'
import { getSchedule, listSchedules } from '../../db/queries/schedules.ts'
import { access } from '../auth/permit.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems, time } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { noSuchSchedule, requireCron } from './changes.ts'
import { isTick, nextRuns, viewSchedule, viewTick } from './schedule-view.ts'
import { preview, previewRequest, schedule, tick } from './schemas.ts'

export const readRoutes = () =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { orgId: c.get('principal').org_id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listSchedules(page))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: viewSchedule }), 200)
    })
    .openapi(getRoute, async (c) => {
      const { id } = c.req.valid('param')
      const [row] = await c.get('run')(getSchedule(c.get('principal').org_id, id))
      if (!row) throw noSuchSchedule(id)
      return c.json(viewSchedule(row), 200)
    })
    .openapi(ticksRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { cursor, limit } = c.req.valid('query')
      const orgId = c.get('principal').org_id
      const page = { orgId, scheduleId: id, before: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listTicks(page))
      if (rows.length === 0) throw noSuchSchedule(id)
      const view = { position: (row: { tick_at: string }) => row.tick_at, item: viewTick }
      return c.json(toPage(rows.filter(isTick), limit, view), 200)
    })
    .openapi(previewRoute, (c) => {
      const { cron, timezone } = c.req.valid('json')
      requireCron(cron, timezone)
      return c.json({ next_runs: nextRuns(cron, timezone, new Date(), 5) }, 200)
    })

const listRoute = createRoute({
  method: 'get',
  path: '/schedules',
  tags: ['schedules'],
  summary: 'List schedules',
  description: 'Oldest first.',
  ...access('jobs:read'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(schedule), 'A page of schedules'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const getRoute = createRoute({
  method: 'get',
  path: '/schedules/{id}',
  tags: ['schedules'],
  summary: 'Get a schedule',
  ...access('jobs:read'),
  request: { params: pathId },
  responses: {
    200: jsonContent(schedule, 'The schedule'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const ticksRoute = createRoute({
  method: 'get',
  path: '/schedules/{id}/ticks',
  tags: ['schedules'],
  summary: 'List the ticks of a schedule, newest first',
  description: 'What became of each, kept as long as finished jobs are. The newest stays.',
  ...access('jobs:read'),
  request: { params: pathId, query: pageQuery(time) },
  responses: {
    200: jsonContent(pageOf(tick), 'A page of ticks'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'invalid-request'),
  },
})

const previewRoute = createRoute({
  method: 'post',
  path: '/schedules/preview',
  tags: ['schedules'],
  summary: 'See when a schedule would tick',
  description: 'Stores nothing.',
  ...access('jobs:read', jsonBody()),
  request: { body: jsonRequest(previewRequest) },
  responses: {
    200: jsonContent(preview, 'The next five ticks'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden'),
  },
})
