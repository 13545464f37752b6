import { createRoute, type z } from '@hono/zod-openapi'
import { getObstacles, type JobFacts, readJobs, withIsoTimes } from '../../db/queries/job-facts.ts'
import type { JobRow } from '../../db/queries/jobs.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { lanesOf, toSnapshot } from '../prediction/eta/queue-sums.ts'
import { seconds } from './durations.ts'
import { explanation } from './explanation.ts'
import { aheadOf, etaOf } from './job-eta.ts'
import { noSuchJob } from './job-path.ts'
import { round, viewSummary } from './job-view.ts'
import { accessToJob } from './of-job.ts'
import { reasonsOf } from './reasons.ts'

export const explainRoutes = () =>
  createRouter().openapi(explainRoute, async (c) => {
    const { id } = c.req.valid('param')
    const { org_id } = c.get('principal')
    const run = c.get('run')
    const [[found], [obstacles]] = await Promise.all([
      run(readJobs(org_id, [id], { most: COUNTED, withQueue: true })),
      run(getObstacles(org_id, id)),
    ])
    if (!found || !obstacles) throw noSuchJob(id)
    const { job, place, workers, queue } = withIsoTimes(found)
    return c.json(explain(job, { ...place, ...obstacles, workers: workers ?? [], queue }), 200)
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
    eta: etaOf(row, facts, {
      workers: facts.workers,
      queue: facts.queue ? toSnapshot(facts.queue, facts.workers) : undefined,
    }),
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

const explainRoute = createRoute({
  method: 'get',
  path: '/jobs/{id}/explain',
  tags: ['jobs'],
  summary: 'Why a job is where it is',
  description:
    'In words and numbers: what it waits for, what is ahead of it, and when it will probably start. ' +
    'About other organisations it says only how much of their work goes first.',
  ...accessToJob('jobs:read'),
  request: { params: pathId },
  responses: {
    200: jsonContent(explanation, 'The explanation'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
