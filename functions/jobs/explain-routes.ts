import { createRoute, z } from '@hono/zod-openapi'
import { getJobFacts, type JobFacts } from '../../db/queries/job-facts.ts'
import { getJob, type JobRow } from '../../db/queries/jobs.ts'
import { lanesOf } from '../../db/queries/queue-facts.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { seconds } from './durations.ts'
import { aheadOf, etaFromFacts } from './job-eta.ts'
import { noSuchJob } from './job-path.ts'
import { round, viewSummary } from './job-view.ts'
import { accessToJob } from './of-job.ts'
import { REASON_CODES, reasonsOf } from './reasons.ts'
import { eta, prediction } from './schemas.ts'

export const explainRoutes = () =>
  createRouter().openapi(explainRoute, async (c) => {
    const { id } = c.req.valid('param')
    const { org_id } = c.get('principal')
    const run = c.get('run')
    const [[row], [facts]] = await Promise.all([
      run(getJob(org_id, id)),
      run(getJobFacts(org_id, id, COUNTED)),
    ])
    if (!row || !facts) throw noSuchJob(id)
    return c.json(explain(row, facts), 200)
  })

const explain = (row: JobRow, facts: JobFacts): z.output<typeof explanation> => {
  const reasons = reasonsOf(row, facts)
  const { prediction, priority_score } = viewSummary(row)
  return {
    job_id: row.id,
    status: row.status,
    summary: reasons[0]?.message ?? 'It is on its way from one state to the next.',
    reasons,
    priority_score,
    ...placeOf(facts),
    prediction,
    eta: etaFromFacts(row, facts),
  }
}

const COUNTED = 10_000

const NOWHERE = { rank: null, ahead: null, lane: null }

/** Only what waits in the queue, and is not parked, has a place. */
const placeOf = (facts: JobFacts): Pick<z.output<typeof explanation>, 'rank' | 'ahead' | 'lane'> => {
  const lanes = facts.queue ? lanesOf(facts.queue) : []
  const ahead = aheadOf(facts, lanes)
  if (!ahead) return NOWHERE
  const { lane, jobs, predictedMs, counted } = ahead
  const own = lanes.find((one) => one.lane === lane) ?? { jobs: 0, predictedMs: 0 }
  const totalMs = lanes.reduce((sum, one) => sum + one.predictedMs, 0)
  return {
    rank: jobs,
    ahead: { jobs, predicted_seconds: seconds(predictedMs), counted },
    lane: {
      number: lane,
      jobs: own.jobs,
      predicted_seconds: seconds(own.predictedMs),
      share: totalMs > 0 ? round(own.predictedMs / totalMs, 4) : 0,
    },
  }
}

const reason = z
  .looseObject({
    code: z.enum(REASON_CODES),
    message: z.string().openapi({ example: '12 jobs are ahead of it, predicted to take 4.2 s on 8 slots.' }),
  })
  .openapi('Reason', { description: 'The numbers of the message stand beside it, by name.' })

export const explanation = z
  .object({
    job_id: z.uuid(),
    status: z.enum(JOB_STATES),
    summary: z.string().openapi({ description: 'The first reason, as a sentence.' }),
    reasons: z.array(reason).openapi({ description: 'What keeps it most comes first.' }),
    rank: z.int().nullable().openapi({
      description: 'Jobs of all organisations ahead of it. Null: it does not stand in the queue.',
    }),
    priority_score: z.number().min(0).max(1),
    ahead: z
      .object({
        jobs: z.int(),
        predicted_seconds: z.number().openapi({ description: 'Of work, on all slots together.' }),
        counted: z
          .boolean()
          .openapi({ description: 'False above 10,000: then it is an estimate from the sums of the queue.' }),
      })
      .nullable(),
    lane: z
      .object({
        number: z.int().openapi({ description: 'Lower lanes go first.' }),
        jobs: z.int(),
        predicted_seconds: z.number(),
        share: z.number().openapi({ description: 'Of the work that is queued.' }),
      })
      .nullable()
      .openapi({ description: 'Jobs of about the same rank, as of the last look at the whole queue.' }),
    prediction,
    eta,
  })
  .openapi('Explanation')

const explainRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/explain',
  tags: ['jobs'],
  summary: 'Why a job is where it is',
  description:
    'In words and numbers: what it waits for, what is ahead of it, and when it will probably start. ' +
    'Of other organisations it says only how many jobs are ahead.',
  ...accessToJob('jobs:read'),
  request: { params: pathId },
  responses: {
    200: jsonContent(explanation, 'The explanation'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
