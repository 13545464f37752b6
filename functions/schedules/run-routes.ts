import { createRoute } from '@hono/zod-openapi'
import { auditScheduleRun, getSchedule } from '../../db/queries/schedules.ts'
import { access } from '../auth/permit.ts'
import { holdOf } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { viewPromise } from '../jobs/job-eta.ts'
import { viewJob } from '../jobs/job-view.ts'
import { job } from '../jobs/schemas.ts'
import { submitAll } from '../jobs/submission.ts'
import { noSuchSchedule } from './changes.ts'
import { toJobRequest } from './scheduled-jobs.ts'

export const runRoutes = () =>
  createRouter().openapi(runRoute, async (c) => {
    const { id } = c.req.valid('param')
    const run = c.get('run')
    const principal = c.get('principal')
    const [schedule] = await run(getSchedule(principal.org_id, id))
    if (!schedule) throw noSuchSchedule(id)
    const { rows } = await submitAll(c.get('services'), principal, [toJobRequest(schedule.job, new Date())], {
      pathOf: () => ['job'],
      triggeredBy: { kind: 'schedule', schedule_id: id, tick_at: null },
      run,
      hold: holdOf(c),
      trace: c.get('trace'),
    })
    const [row] = rows
    if (!row) throw new Error('One job was sent and none came back')
    // It runs, and says itself who has made it: without its line in the audit log, too.
    await run(auditScheduleRun(principal.org_id, id, row.id)).catch(logFailure)
    return c.json(viewJob(row, viewPromise(row)), 201, { location: `/jobs/${row.id}` })
  })

const runRoute = createRoute({
  method: 'post',
  path: '/schedules/{id}/run',
  tags: ['schedules'],
  summary: 'Run a schedule now',
  description:
    'Submits its job as POST /jobs would, also while it is paused. Its ticks stay as they are; `triggered_by.tick_at` of the ' +
    'job is null.',
  ...access('schedules:manage'),
  request: { params: pathId },
  responses: {
    201: jsonContent(job, 'The job, queued'),
    ...problems(
      'unauthenticated',
      'forbidden',
      'not-found',
      'invalid-request',
      'unknown-job-type',
      'quota-exceeded',
    ),
  },
})
