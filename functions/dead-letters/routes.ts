import { createRoute, z } from '@hono/zod-openapi'
import { type DeadLetterGroup, listDeadLetters } from '../../db/queries/dead-letters.ts'
import { access } from '../auth/permit.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { pageFields, pageOf, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { filterFields } from '../jobs/filter.ts'
import { queueFull } from '../jobs/quota.ts'
import { retryMany } from '../jobs/retries.ts'
import { type Change, sweepJobs } from '../jobs/sweep.ts'
import { deadLetters, replayed, replayRequest } from './schemas.ts'

export const deadLetterRoutes = () =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { cursor, limit, type, name } = c.req.valid('query')
      const { org_id } = c.get('principal')
      const page = { orgId: org_id, type, name, after: toPosition(cursor), limit: limit + 1 }
      const rows = await c.get('run')(listDeadLetters(page))
      return c.json(toPage(rows, limit, { position: toCursor, item: viewGroup }), 200)
    })
    .openapi(replayRoute, async (c) => {
      const { job_ids, limit, type, name, fingerprint } = c.req.valid('json')
      const run = c.get('run')
      const { org_id } = c.get('principal')
      const replay: Change = async (ids) => {
        const { retried, full } = await retryMany(run, org_id, ids, holdOf(c), ['failed'])
        return { changed: retried, full }
      }
      if (job_ids) {
        const { changed, full } = await replay(job_ids)
        if (full && changed === 0) throw queueFull()
        return c.json({ replayed: changed, done: !full }, 200)
      }
      const filter = { statuses: ['failed'] as const, type, name, fingerprint }
      const { changed, done } = await sweepJobs(run, { orgId: org_id, filter, limit }, replay)
      return c.json({ replayed: changed, done }, 200)
    })

const POSITION = /^(\d{1,18})\.([0-9a-f]{32})$/

const toCursor = ({ position, fingerprint }: DeadLetterGroup): string => `${position}.${fingerprint}`

const toPosition = (cursor: string | undefined): { position: string; fingerprint: string } | null => {
  const [, position, fingerprint] = POSITION.exec(cursor ?? '') ?? []
  return position !== undefined && fingerprint !== undefined ? { position, fingerprint } : null
}

const viewGroup = (row: DeadLetterGroup): z.output<typeof deadLetters> => ({
  fingerprint: row.fingerprint,
  count: row.count,
  code: row.error.code,
  message: row.error.message,
  types: row.types,
  first_failed_at: row.first_failed_at,
  last_failed_at: row.last_failed_at,
  example_job_ids: row.example_job_ids,
})

const listRoute = createRoute({
  method: 'get',
  path: '/dlq',
  tags: ['dead letters'],
  summary: 'List failed jobs by their error',
  description:
    'Errors that differ only in ids, numbers and quoted values are one group. ' +
    'The group that failed last comes first. `GET /jobs?fingerprint=…` lists the jobs of one.',
  ...access('jobs:read'),
  request: {
    query: z.strictObject({
      type: filterFields.type,
      name: filterFields.name,
      ...pageFields(z.string().regex(POSITION)),
    }),
  },
  responses: {
    200: jsonContent(pageOf(deadLetters), 'A page of groups'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const replayRoute = createRoute({
  method: 'post',
  path: '/dlq/replay',
  tags: ['dead letters'],
  summary: 'Retry failed jobs',
  description:
    'Say which: those of one `fingerprint`, `type` or `name`, or of several of these together, up to 1,000 `job_ids`, ' +
    'or `"all": true`. Each starts over with all its attempts. Newest first, a thousand in each transaction.',
  ...access('jobs:manage', jsonBody()),
  request: { body: jsonRequest(replayRequest) },
  responses: {
    200: jsonContent(replayed, 'What was done'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'quota-exceeded'),
  },
})
