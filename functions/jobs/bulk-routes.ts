import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { FINISHED_STATES, JOB_STATES, type JobState } from '../../db/rules/job-states.ts'
import { access } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { tellHolders } from './cancellation.ts'
import { FINGERPRINT_RULE, type Filter, filterFields, fitsFingerprint, toJobFilter } from './filter.ts'
import { retryMany } from './retries.ts'
import { sweep } from './schemas.ts'
import { type Change, countSweep, MAX_SWEEP, type Sweep, sweepJobs } from './sweep.ts'

const CANCELLABLE = JOB_STATES.filter((state) => !FINISHED_STATES.some((finished) => finished === state))
const RETRYABLE = ['failed', 'cancelled'] as const

export const bulkRoutes = () =>
  createRouter()
    .openapi(bulkCancelRoute, async (c) =>
      c.json(
        await actInBulk(c, c.req.valid('json'), CANCELLABLE, async (ids) => {
          const run = c.get('run')
          const cancelled = await run(cancelJobs(c.get('principal').org_id, ids))
          holdOf(c)(tellHolders(run, cancelled))
          return { changed: cancelled.length, full: false }
        }),
        200,
      ),
    )
    .openapi(bulkRetryRoute, async (c) =>
      c.json(
        await actInBulk(c, c.req.valid('json'), RETRYABLE, async (ids) => {
          const { retried, full } = await retryMany(c.get('run'), c.get('principal').org_id, ids, holdOf(c))
          return { changed: retried, full }
        }),
        200,
      ),
    )

const { fingerprint, ...cancelFields } = filterFields

const saysSomething = (filter: Filter): boolean => Object.keys(filter).length > 0
const NOTHING = 'needs at least one field'

const cancelFilter = z
  .strictObject({ ...cancelFields, status: z.enum(CANCELLABLE).optional() })
  .refine(saysSomething, NOTHING)

const retryFilter = z
  .strictObject({ ...filterFields, status: z.enum(RETRYABLE).optional() })
  .refine(saysSomething, NOTHING)
  .refine(fitsFingerprint, FINGERPRINT_RULE)

const bulkRequest = <BulkFilter extends z.ZodType<Filter>>(filter: BulkFilter) =>
  z.strictObject({
    filter: filter.openapi({ description: 'All fields that are given must hold. At least one is needed.' }),
    dry_run: z.boolean().default(false).openapi({ description: 'Only count, up to 100,000.' }),
  })

const cancelRequest = bulkRequest(cancelFilter).openapi('BulkCancel')
const retryRequest = bulkRequest(retryFilter).openapi('BulkRetry')

const actInBulk = async (
  c: Context<AppEnv>,
  { filter, dry_run }: { filter: Filter; dry_run: boolean },
  states: readonly JobState[],
  change: Change,
): Promise<Sweep> => {
  const run = c.get('run')
  const scope = { orgId: c.get('principal').org_id, filter: toJobFilter(filter, states) }
  return dry_run ? countSweep(run, scope.orgId, scope.filter) : sweepJobs(run, scope, change)
}

const answers = {
  200: jsonContent(sweep, 'What was done'),
  ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'quota-exceeded'),
}

const bulk = {
  method: 'post' as const,
  tags: ['jobs'],
  ...access('jobs:manage', jsonBody()),
  responses: answers,
}

const LIMIT = `At most ${MAX_SWEEP.toLocaleString('en')} jobs in one request, newest first, a thousand in each transaction.`

const bulkCancelRoute = createRoute({
  ...bulk,
  path: '/jobs/bulk/cancel',
  summary: 'Cancel all jobs that fit a filter',
  description: `Without a \`status\`, jobs in every state but the finished ones. ${LIMIT}`,
  request: { body: jsonRequest(cancelRequest) },
})

const bulkRetryRoute = createRoute({
  ...bulk,
  path: '/jobs/bulk/retry',
  summary: 'Retry all jobs that fit a filter',
  description:
    `Without a \`status\`, failed and cancelled jobs. ${LIMIT} ` +
    'When the queue is as full as it may be, it stops with `"done": false`, or with 429 if none could be retried.',
  request: { body: jsonRequest(retryRequest) },
})
