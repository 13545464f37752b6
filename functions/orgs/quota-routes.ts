import { createRoute, type z } from '@hono/zod-openapi'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { getQuotas, setQuotas } from '../../db/queries/quotas.ts'
import type { Run } from '../../db/query.ts'
import { QUOTAS, type Quota } from '../../db/rules/quotas.ts'
import { access, enterAs } from '../auth/permit.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { logFailure } from '../http/log.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { quotaChange, quotas } from './schemas.ts'

export const quotaRoutes = () =>
  createRouter()
    .openapi(quotasRoute, async (c) => c.json(await look(c.get('run'), c.get('principal').org_id), 200))
    .openapi(changeRoute, async (c) => {
      const { id } = c.req.valid('param')
      const run = enterAs(c, { leastRole: 'admin', allOrgs: true })
      const [changed] = await run(setQuotas(id, c.req.valid('json')))
      if (!changed) throw new ProblemError('not-found', `There is no organisation ${id}.`)
      // More may be allowed to run.
      holdOf(c)(run(notify(JOBS_READY, [''])).catch(logFailure))
      return c.json(await look(run, id), 200)
    })

const look = async (run: Run, orgId: string): Promise<z.output<typeof quotas>> => {
  const found = await run(getQuotas(orgId))
  const rows = new Map(found.map((row) => [row.quota, row]))
  const view = (quota: Quota) => ({
    limit: toNumber(rows.get(quota)?.allowed),
    used: Number(rows.get(quota)?.used ?? 0),
  })
  const limits = QUOTAS.map((quota) => [quota, view(quota)])
  return { ...Object.fromEntries(limits), weight: found[0]?.weight ?? 1 }
}

const toNumber = (text: string | null | undefined): number | null =>
  text === null || text === undefined ? null : Number(text)

const quotasRoute = createRoute({
  method: 'get',
  path: '/orgs/me/quotas',
  tags: ['organisations'],
  summary: 'See the quotas of the active organisation, and what is used of them',
  description:
    'A submission above `submissions_per_minute` (counted in jobs), `payload_bytes_per_day` or `queued_jobs` (queued or ' +
    'running) is refused with 429, and so is a retry above the last. Jobs above `running_jobs` are accepted and wait until ' +
    "others have ended. The workers' time is shared between the organisations that have waiting jobs, by `weight`.",
  ...access('org:read'),
  responses: {
    200: jsonContent(quotas, 'The quotas'),
    ...problems('unauthenticated', 'forbidden'),
  },
})

const changeRoute = createRoute({
  method: 'patch',
  path: '/orgs/{id}/quotas',
  tags: ['organisations'],
  summary: 'Set the quotas of an organisation',
  ...access('platform', jsonBody()),
  request: { params: pathId, body: jsonRequest(quotaChange) },
  responses: {
    200: jsonContent(quotas, 'The quotas from now on'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'not-found'),
  },
})
