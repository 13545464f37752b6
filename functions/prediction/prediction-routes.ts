import { createRoute } from '@hono/zod-openapi'
import { access } from '../auth/permit.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { newJob } from '../jobs/new-job.ts'
import { checkPayloads } from '../jobs/payloads.ts'
import { createToPredict } from '../jobs/to-predict.ts'
import { forecast, viewForecast } from './forecast.ts'

export const predictionRoutes = () =>
  createRouter().openapi(predictRoute, async (c) => {
    const request = c.req.valid('json')
    const { jobTypes, predictions } = c.get('services')
    await checkPayloads(jobTypes, [request], () => [])
    const asking = { run: c.get('run'), orgId: c.get('principal').org_id, hold: holdOf(c), dryRun: true }
    const [predicted] = await predictions.predict([createToPredict([request])(request)], asking)
    return c.json(viewForecast(request, predicted ?? null, Date.now()), 200)
  })

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
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'unknown-job-type'),
  },
})
