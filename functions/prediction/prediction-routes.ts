import { createRoute, z } from '@hono/zod-openapi'
import type { JobPrediction } from '../../db/learning/prediction.ts'
import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from '../../db/rules/estimate.ts'
import { etaAfter } from '../../db/rules/eta.ts'
import { priorityScore, rankTerms } from '../../db/rules/priority.ts'
import { access } from '../auth/permit.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { viewEta } from '../jobs/job-eta.ts'
import { round } from '../jobs/job-view.ts'
import { type JobRequest, newJob } from '../jobs/new-job.ts'
import { checkPayloads } from '../jobs/payloads.ts'
import { eta, prediction } from '../jobs/schemas.ts'
import { createToPredict } from '../jobs/to-predict.ts'

export const predictionRoutes = () =>
  createRouter().openapi(predictRoute, async (c) => {
    const request = c.req.valid('json')
    const { jobTypes, predictions } = c.get('services')
    await checkPayloads(jobTypes, [request], () => [])
    const asking = { run: c.get('run'), orgId: c.get('principal').org_id, hold: holdOf(c), dryRun: true }
    const [predicted] = await predictions.predict([createToPredict([request])(request)], asking)
    return c.json(view(request, predicted ?? UNKNOWN, Date.now()), 200)
  })

/** What the statement would go by if it found nothing either. */
const UNKNOWN: JobPrediction = {
  p50Log: DEFAULT_ESTIMATE.meanLog,
  p90Log: DEFAULT_ESTIMATE.meanLog + P90_DEVIATIONS * DEFAULT_ESTIMATE.deviationLog,
  p99Log: null,
  spreadLog: 0,
  source: 'default',
  modelVersion: null,
  residualLog: 0,
  sample: null,
  promisedWaitMs: null,
}

const view = (request: JobRequest, predicted: JobPrediction, now: number): z.output<typeof forecast> => {
  const p50Ms = Math.exp(predicted.p50Log)
  const p90Ms = Math.exp(predicted.p90Log)
  const { rank_base, rank_slope } = rankTerms(
    request.priority,
    request.timeout_seconds ?? null,
    predicted.spreadLog,
  )
  const notBeforeMs = request.run_at === undefined ? 0 : Math.max(0, Date.parse(request.run_at) - now)
  const { promisedWaitMs: waitMs } = predicted
  return {
    prediction: {
      p50_ms: round(p50Ms, 1),
      p90_ms: round(p90Ms, 1),
      source: predicted.source,
      model_version: predicted.modelVersion,
    },
    eta: waitMs === null ? null : viewEta(now, etaAfter(waitMs, { p50Ms, p90Ms, notBeforeMs })),
    priority_score: round(priorityScore(rank_base + rank_slope * predicted.p50Log), 4),
    deadline_at_risk:
      request.deadline !== undefined && now + notBeforeMs + p90Ms > Date.parse(request.deadline),
  }
}

const forecast = z
  .object({
    prediction,
    eta,
    priority_score: z.number().min(0).max(1),
    deadline_at_risk: z
      .boolean()
      .openapi({ description: 'Started at once, it would probably end after its deadline.' }),
  })
  .openapi('Forecast')

const predictRoute = createRoute({
  method: 'post',
  path: '/predictions',
  tags: ['prediction'],
  summary: 'Predict a job without submitting it',
  description:
    'Takes what POST /jobs takes, and checks it the same way, but for the jobs that it depends on. Nothing is stored, and ' +
    'no quota is used.',
  ...access('jobs:read', jsonBody()),
  request: { body: jsonRequest(newJob) },
  responses: {
    200: jsonContent(forecast, 'What would be answered if it were submitted now'),
    ...problems(
      'malformed-body',
      'unauthenticated',
      'forbidden',
      'body-too-large',
      'unsupported-media-type',
      'invalid-request',
      'unknown-job-type',
    ),
  },
})
