import { createRoute, z } from '@hono/zod-openapi'
import { problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { forOperators } from './access.ts'
import { PROMETHEUS_TEXT } from './prometheus-text.ts'

export const metricsRoutes = () =>
  createRouter().openapi(metricsRoute, async (c) => {
    const text = await c.get('services').metrics.read()
    return c.text(text, 200, { 'content-type': PROMETHEUS_TEXT })
  })

const metricsRoute = createRoute({
  method: 'get',
  path: '/metrics',
  tags: ['operations'],
  summary: 'Metrics for Prometheus',
  description:
    'Of the whole system; nothing in them tells of an organisation. Where `OPERATIONS_TOKEN` is bound, that is the bearer token.',
  middleware: forOperators(),
  responses: {
    200: {
      description: 'Metrics in the text format',
      content: { 'text/plain': { schema: z.string() } },
    },
    ...problems('unauthenticated'),
  },
})
