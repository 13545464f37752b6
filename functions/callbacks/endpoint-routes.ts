import { createRoute, z } from '@hono/zod-openapi'
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  type EndpointRow,
  getEndpoint,
  listEndpoints,
  MAX_ENDPOINTS,
  URL_TAKEN,
} from '../../db/queries/callback-endpoints.ts'
import { newCallback } from '../../db/queries/callback-job.ts'
import { takeTurns } from '../../db/queries/scope.ts'
import { submitJobs } from '../../db/queue/submit.ts'
import { CALLBACK_TYPE, TEST_EVENT } from '../../db/rules/callbacks.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { access, enterAs } from '../auth/permit.ts'
import { memberOf } from '../auth/principal.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { refuse } from '../jobs/refusals.ts'
import { endpoint, endpointChange, newEndpoint, sentTest } from './schemas.ts'

export const endpointRoutes = () =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { orgId: c.get('principal').org_id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listEndpoints(page))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: viewEndpoint }), 200)
    })
    .openapi(createEndpointRoute, async (c) => {
      const { url, events } = c.req.valid('json')
      const { org_id: orgId, user_id: userId } = c.get('principal')
      const run = enterAs(c, { leastRole: 'org_admin' }, takeTurns('callback-endpoints', orgId))
      const [made] = await run(createEndpoint({ id: uuidV7(), orgId, userId, url, events }))
      if (!made) throw new Error('A wish for an endpoint is answered by one row')
      if (made.id === null) throw made.has_room ? alreadyThere() : tooMany()
      return c.json(viewEndpoint(made), 201)
    })
    .openapi(changeRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { url = null, events = null, disabled = null } = c.req.valid('json')
      const orgId = c.get('principal').org_id
      const change = changeEndpoint({ id, orgId, url, events, disabled })
      const [row] = await c
        .get('run')(change)
        .catch((error: { code?: string }) => {
          throw error.code === URL_TAKEN ? alreadyThere() : error
        })
      if (!row) throw (await c.get('run')(getEndpoint(orgId, id))).length > 0 ? tooMany() : noSuchEndpoint(id)
      return c.json(viewEndpoint(row), 200)
    })
    .openapi(deleteRoute, async (c) => {
      const { id } = c.req.valid('param')
      const [deleted] = await c.get('run')(deleteEndpoint(c.get('principal').org_id, id))
      if (!deleted) throw noSuchEndpoint(id)
      return c.body(null, 204)
    })
    .openapi(testRoute, async (c) => {
      const { id } = c.req.valid('param')
      const run = c.get('run')
      const principal = c.get('principal')
      const { org_id: orgId } = principal
      const [row] = await run(getEndpoint(orgId, id))
      if (!row) throw noSuchEndpoint(id)
      const { traceparent } = c.get('trace')
      const timestamp = new Date().toISOString()
      const body = { type: TEST_EVENT, timestamp, data: { endpoint_id: id, org_id: orgId } } as const
      const job = newCallback({ url: row.url, body, triggeredBy: null, traceparent, fairnessKey: null })
      const submitting = submitJobs([{ ...memberOf(principal), jobs: [job] }])
      const { rows } = submitting.read(await run(submitting))
      refuse(rows, { requests: [], ids: [], pathOf: () => [], principal })
      c.get('services').submitter.announce([CALLBACK_TYPE], holdOf(c))
      return c.json({ job_id: job.id }, 202, { location: `/jobs/${job.id}` })
    })

const noSuchEndpoint = (id: string): ProblemError =>
  new ProblemError('not-found', `There is no callback endpoint ${id} in this organisation.`)

const alreadyThere = (): ProblemError =>
  new ProblemError('endpoint-exists', 'The organisation has an endpoint with this URL. Change that one.')

const tooMany = (): ProblemError =>
  new ProblemError('limit-reached', `The organisation has ${MAX_ENDPOINTS} endpoints. Delete some first.`)

const viewEndpoint = (row: EndpointRow): z.output<typeof endpoint> => ({
  id: row.id,
  url: row.url,
  events: row.events,
  disabled_at: row.disabled_at,
  disabled_reason: row.disabled_reason,
  created_by: row.created_by,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

const listRoute = createRoute({
  method: 'get',
  path: '/callbacks/endpoints',
  tags: ['callbacks'],
  summary: 'List the endpoints of the active organisation',
  description:
    'Oldest first: those that are told of all its jobs, and what jobs named as `callback_url` that is disabled.',
  ...access('webhooks:read'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(endpoint), 'A page of endpoints'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const createEndpointRoute = createRoute({
  method: 'post',
  path: '/callbacks/endpoints',
  tags: ['callbacks'],
  summary: 'Have a URL told of all jobs',
  description:
    'Of jobs that end from now on, by a POST that is signed as Standard Webhooks describes. A single job is told of by its ' +
    '`callback_url`; a URL that is both is told once.',
  ...access('webhooks:manage', jsonBody()),
  request: { body: jsonRequest(newEndpoint) },
  responses: {
    201: jsonContent(endpoint, 'The endpoint'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'endpoint-exists', 'limit-reached'),
  },
})

const changeRoute = createRoute({
  method: 'patch',
  path: '/callbacks/endpoints/{id}',
  tags: ['callbacks'],
  summary: 'Change, disable or enable an endpoint',
  description: 'A URL that is disabled is told nothing, not even of jobs that name it as `callback_url`.',
  ...access('webhooks:manage', jsonBody()),
  request: { params: pathId, body: jsonRequest(endpointChange) },
  responses: {
    200: jsonContent(endpoint, 'The endpoint from now on'),
    ...problems(
      ...BODY_PROBLEMS,
      'unauthenticated',
      'forbidden',
      'not-found',
      'endpoint-exists',
      'limit-reached',
    ),
  },
})

const deleteRoute = createRoute({
  method: 'delete',
  path: '/callbacks/endpoints/{id}',
  tags: ['callbacks'],
  summary: 'Delete an endpoint',
  description:
    'What is on its way is still sent. Jobs that name the URL as `callback_url` are told of again.',
  ...access('webhooks:manage'),
  request: { params: pathId },
  responses: {
    204: { description: 'Deleted' },
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const testRoute = createRoute({
  method: 'post',
  path: '/callbacks/endpoints/{id}/test',
  tags: ['callbacks'],
  summary: 'Try an endpoint out',
  description:
    'Sends an event of the type `test`, signed and retried like all others, also if it is disabled.',
  ...access('webhooks:manage'),
  request: { params: pathId },
  responses: {
    202: jsonContent(sentTest, 'On its way'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'quota-exceeded'),
  },
})
