import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'

const READING = ['GET', 'HEAD', 'OPTIONS']

/**
 * After every request that may have changed something of an organisation, its stream is told: events are there to be read,
 * or somebody has been removed. Which of them did does not matter: a nudge in vain costs one read.
 */
export const nudgeStreams = (): MiddlewareHandler<AppEnv> => async (c, next) => {
  await next()
  if (READING.includes(c.req.method) || c.res.status >= 400) return
  const orgId = c.get('changedOrgId') ?? c.get('principal')?.org_id
  if (orgId) c.get('services').streams.nudger.nudge(orgId, holdOf(c))
}
