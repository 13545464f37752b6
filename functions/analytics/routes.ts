import { createRoute, z } from '@hono/zod-openapi'
import { getQueueDepth, getSchedulingGain, getThroughput } from '../../db/queries/analytics.ts'
import { getPredictionAccuracy } from '../../db/queries/analytics-accuracy.ts'
import { getLeader } from '../../db/queries/registry.ts'
import { access } from '../auth/permit.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { accuracy, leaderHistory, queueDepth, range, schedulingGain, summary, throughput } from './schemas.ts'
import { orNull, readSummary } from './summary.ts'
import { viewAccuracy, viewGain, viewLeader, viewQueueDepth } from './views.ts'

const HOUR = 3_600

const FLOW = {
  '24h': { span: 3600, seconds: HOUR, count: 24 },
  '1h': { span: 60, seconds: 60, count: 60 },
  '7d': { span: 3600, seconds: HOUR, count: 168 },
  '30d': { span: 3600, seconds: 6 * HOUR, count: 120 },
} as const

const DEPTH = {
  '1h': { span: 60, seconds: 60, count: 60, ahead: { every: 1, minutes: 30 } },
  '24h': { span: 60, seconds: 900, count: 96, ahead: { every: 5, minutes: 60 } },
  '7d': { span: 3600, seconds: HOUR, count: 168, ahead: { every: 5, minutes: 60 } },
} as const

const GAIN = {
  '24h': { seconds: HOUR, count: 24 },
  '1h': { seconds: 300, count: 12 },
  '7d': { seconds: 6 * HOUR, count: 28 },
} as const

export const analyticsRoutes = () =>
  createRouter()
    .openapi(summaryRoute, async (c) =>
      c.json(await readSummary(c.get('run'), c.get('principal').org_id), 200),
    )
    .openapi(throughputRoute, async (c) => {
      const { range } = c.req.valid('query')
      const rows = await c.get('run')(getThroughput(c.get('principal').org_id, FLOW[range]))
      const items = rows.map((row) => ({
        ...row,
        at: row.at,
        runtime_mean_ms: orNull(row.runtime_mean_ms, 1),
        wait_mean_ms: orNull(row.wait_mean_ms, 1),
      }))
      return c.json({ range, bucket_seconds: FLOW[range].seconds, items }, 200)
    })
    .openapi(accuracyRoute, async (c) => {
      const { range, type } = c.req.valid('query')
      const buckets = FLOW[range]
      const [row] = await c.get('run')(
        getPredictionAccuracy(c.get('principal').org_id, type ?? null, buckets),
      )
      if (!row) throw new Error('Accuracy is one row')
      return c.json({ range, bucket_seconds: buckets.seconds, ...viewAccuracy(row) }, 200)
    })
    .openapi(depthRoute, async (c) => {
      const { range } = c.req.valid('query')
      const { ahead, ...buckets } = DEPTH[range]
      const [row] = await c.get('run')(getQueueDepth(c.get('principal').org_id, buckets))
      if (!row) throw new Error('Depth is one row')
      return c.json({ range, bucket_seconds: buckets.seconds, ...viewQueueDepth(row, ahead) }, 200)
    })
    .openapi(leaderRoute, async (c) => {
      const [row] = await c.get('run')(getLeader())
      if (!row) throw new ProblemError('not-found', 'No worker has been elected leader yet.')
      return c.json(viewLeader(row), 200)
    })
    .openapi(gainRoute, async (c) => {
      const { range } = c.req.valid('query')
      const points = await c.get('run')(getSchedulingGain(c.get('principal').org_id, GAIN[range]))
      return c.json(viewGain(range, points), 200)
    })

const refusals = problems('unauthenticated', 'forbidden', 'invalid-request')

const reading = <Path extends string>(path: Path, summary: string, description: string) => ({
  method: 'get' as const,
  path,
  tags: ['analytics'],
  summary,
  description,
  ...access('jobs:read'),
})

const summaryRoute = createRoute({
  ...reading(
    '/analytics/summary',
    'See how the queue does',
    'Depth and workers are of this moment; what came and ended is counted within a few seconds.',
  ),
  responses: { 200: jsonContent(summary, 'The summary'), ...refusals },
})

const throughputRoute = createRoute({
  ...reading(
    '/analytics/throughput',
    'What came and what ended over time',
    'By the minute (`1h`), the hour (`24h`, `7d`) or six hours (`30d`), in UTC.',
  ),
  request: { query: z.object({ range: range(['24h', '1h', '7d', '30d']) }) },
  responses: { 200: jsonContent(throughput, 'Jobs over time'), ...refusals },
})

const accuracyRoute = createRoute({
  ...reading(
    '/analytics/prediction-accuracy',
    'How good predictions were',
    'Of jobs that completed, by what was predicted when they were submitted.',
  ),
  request: {
    query: z.object({ range: range(['24h', '7d', '30d']), type: z.string().min(1).max(64).optional() }),
  },
  responses: { 200: jsonContent(accuracy, 'The accuracy'), ...refusals },
})

const depthRoute = createRoute({
  ...reading(
    '/analytics/queue-depth',
    'How deep the queue was, and will be',
    'Looked at every 15 seconds. The forecast goes from what is queued, the slots of live workers, what usually comes, and jobs and ' +
      'ticks whose time is known: half an hour ahead (`1h`) or an hour.',
  ),
  request: { query: z.object({ range: range(['1h', '24h', '7d']) }) },
  responses: { 200: jsonContent(queueDepth, 'The depth'), ...refusals },
})

const leaderRoute = createRoute({
  ...reading(
    '/analytics/scheduler-leader',
    'Who leads, and who has led',
    'Of the newest term, alive or not, with the elections before it.',
  ),
  responses: {
    200: jsonContent(leaderHistory, 'The leader'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const gainRoute = createRoute({
  ...reading(
    '/analytics/scheduling-gain',
    'What the order is worth',
    'How long jobs waited, and how long the same jobs would have waited first in, first out.',
  ),
  request: { query: z.object({ range: range(['24h', '1h', '7d']) }) },
  responses: { 200: jsonContent(schedulingGain, 'The gain'), ...refusals },
})
