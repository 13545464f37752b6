import { createRoute } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { createSchedule, deleteSchedule, MAX_SCHEDULES } from '../../db/queries/schedules.ts'
import { takeTurns } from '../../db/queries/scope.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { access, enterAs } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { jsonBody, SCHEDULE_LIMITS } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { applyChange, nextAt, noSuchSchedule, requireCron, type ScheduleChange } from './changes.ts'
import { viewSchedule } from './schedule-view.ts'
import { checkScheduledJob, toScheduledJob } from './scheduled-jobs.ts'
import { newSchedule, schedule, scheduleChange } from './schemas.ts'

export const changeRoutes = () =>
  createRouter()
    .openapi(createScheduleRoute, async (c) => {
      const request = c.req.valid('json')
      const { org_id: orgId, user_id: created_by } = c.get('principal')
      const { name, cron, timezone, paused } = request
      requireCron(cron, timezone)
      const job = toScheduledJob(request.job, name)
      await checkScheduledJob(c.get('services').jobTypes, job)
      const next_at = paused ? null : nextAt(cron, timezone, new Date())
      const run = enterAs(c, { leastRole: 'user' }, takeTurns('schedules', orgId))
      const [row] = await run(createSchedule(orgId, { ...request, id: uuidV7(), created_by, job, next_at }))
      if (!row) throw tooManySchedules()
      return c.json(viewSchedule(row), 201, { location: `/schedules/${row.id}` })
    })
    .openapi(changeRoute, async (c) =>
      c.json(await change(c, c.req.valid('param').id, c.req.valid('json')), 200),
    )
    .openapi(pauseRoute, async (c) => c.json(await change(c, c.req.valid('param').id, { paused: true }), 200))
    .openapi(resumeRoute, async (c) =>
      c.json(await change(c, c.req.valid('param').id, { paused: false }), 200),
    )
    .openapi(deleteRoute, async (c) => {
      const { id } = c.req.valid('param')
      const [deleted] = await c.get('run')(deleteSchedule(c.get('principal').org_id, id))
      if (!deleted) throw noSuchSchedule(id)
      return c.body(null, 204)
    })

const change = async (c: Context<AppEnv>, id: string, wanted: ScheduleChange) => {
  const { jobTypes } = c.get('services')
  const target = { run: c.get('run'), orgId: c.get('principal').org_id, id, jobTypes }
  return viewSchedule(await applyChange(target, wanted))
}

const tooManySchedules = (): ProblemError =>
  new ProblemError('limit-reached', `The organisation has ${MAX_SCHEDULES} schedules. Delete some first.`)

const refusals = problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'unknown-job-type')

const createScheduleRoute = createRoute({
  method: 'post',
  path: '/schedules',
  tags: ['schedules'],
  summary: 'Make a schedule',
  description:
    'At each tick its job is submitted, once: nobody is its submitter, and the quotas of the organisation are charged. ' +
    'The payload is checked as that of POST /jobs is.',
  ...access('schedules:manage', jsonBody(SCHEDULE_LIMITS)),
  request: { body: jsonRequest(newSchedule) },
  responses: {
    201: jsonContent(schedule, 'The schedule, with its next five ticks'),
    ...refusals,
    ...problems('limit-reached'),
  },
})

const changeRoute = createRoute({
  method: 'patch',
  path: '/schedules/{id}',
  tags: ['schedules'],
  summary: 'Change a schedule',
  description:
    'What is not named stays; `job` is replaced as a whole. With another `cron` or `timezone`, and when it is resumed, the ' +
    'next tick is the next from now on.',
  ...access('schedules:manage', jsonBody(SCHEDULE_LIMITS)),
  request: { params: pathId, body: jsonRequest(scheduleChange) },
  responses: {
    200: jsonContent(schedule, 'The schedule, changed'),
    ...refusals,
    ...problems('not-found'),
  },
})

const pauseRoute = createRoute({
  method: 'post',
  path: '/schedules/{id}/pause',
  tags: ['schedules'],
  summary: 'Pause a schedule',
  description: 'It does not tick until it is resumed. Jobs that it has made go on.',
  ...access('schedules:manage'),
  request: { params: pathId },
  responses: {
    200: jsonContent(schedule, 'The schedule, paused'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const resumeRoute = createRoute({
  method: 'post',
  path: '/schedules/{id}/resume',
  tags: ['schedules'],
  summary: 'Resume a schedule',
  description: 'From now on: ticks of the pause are not made up for, whatever `catch_up` says.',
  ...access('schedules:manage'),
  request: { params: pathId },
  responses: {
    200: jsonContent(schedule, 'The schedule, with its next five ticks'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const deleteRoute = createRoute({
  method: 'delete',
  path: '/schedules/{id}',
  tags: ['schedules'],
  summary: 'Delete a schedule',
  description: 'With its ticks. Jobs that it has made stay.',
  ...access('schedules:manage'),
  request: { params: pathId },
  responses: {
    204: { description: 'Deleted' },
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
