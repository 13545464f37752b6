import { OpenAPIHono } from '@hono/zod-openapi'
import { requestId } from 'hono/request-id'
import { analyticsRoutes } from './analytics/routes.ts'
import { apiDocsRoutes } from './api-docs/routes.ts'
import { authRoutes } from './auth/routes.ts'
import { autoscaleRoutes } from './autoscale/routes.ts'
import { callbackRoutes } from './callbacks/routes.ts'
import type { AppEnv } from './context.ts'
import { deadLetterRoutes } from './dead-letters/routes.ts'
import { deletionRoutes } from './deletion/routes.ts'
import { healthRoutes } from './health/routes.ts'
import { crossOrigin, securityHeaders } from './http/browser-policy.ts'
import { notFound, onError } from './http/on-error.ts'
import { jobRoutes } from './jobs/routes.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { organisationRoutes } from './orgs/routes.ts'
import { predictionRouter } from './prediction/routes.ts'
import { queueRoutes } from './queue/routes.ts'
import { scheduleRoutes } from './schedules/routes.ts'
import { servicesFor } from './services.ts'
import { nudgeStreams } from './stream/nudge-after.ts'
import { streamRoutes } from './stream/routes.ts'
import { traceRequests } from './tracing/trace-requests.ts'
import { webhookRoutes } from './webhooks/routes.ts'

export const createApp = (): OpenAPIHono<AppEnv> => {
  // Not strict: a trailing slash names the same resource.
  const app = new OpenAPIHono<AppEnv>({ strict: false })
  app.onError(onError)
  app.notFound(notFound)
  app.use(requestId())
  app.use(securityHeaders())
  app.use(async (c, next) => {
    c.set('services', servicesFor(c.env))
    await next()
  })
  app.use(traceRequests())
  app.use(crossOrigin())
  app.use(nudgeStreams())
  app.route('/', healthRoutes())
  app.route('/', authRoutes())
  app.route('/', organisationRoutes())
  app.route('/', deletionRoutes())
  // Before the jobs: /jobs/stream is not the id of one.
  app.route('/', streamRoutes())
  app.route('/', jobRoutes())
  app.route('/', webhookRoutes())
  app.route('/', deadLetterRoutes())
  app.route('/', queueRoutes())
  app.route('/', scheduleRoutes())
  app.route('/', predictionRouter())
  app.route('/', metricsRoutes())
  app.route('/', callbackRoutes())
  app.route('/', analyticsRoutes())
  app.route('/', autoscaleRoutes())
  app.route('/', apiDocsRoutes())
  return app
}
