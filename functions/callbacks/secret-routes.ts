import { createRoute } from '@hono/zod-openapi'
import { getCallbackSecret, rotateCallbackSecret } from '../../db/queries/callback-endpoints.ts'
import { access } from '../auth/permit.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { rotatedSecret, rotation, secret } from './schemas.ts'

export const secretRoutes = () =>
  createRouter()
    .openapi(getRoute, async (c) => {
      const [row] = await c.get('run')(getCallbackSecret(c.get('principal').org_id))
      if (!row) {
        throw new ProblemError('not-found', 'There is no secret yet. POST /callbacks/secret makes one.')
      }
      const { hint, created_at, previous_expires_at } = row
      return c.json({ hint, created_at, previous_expires_at }, 200)
    })
    .openapi(rotateRoute, async (c) => {
      const { keep_previous_seconds } = c.req.valid('json')
      const orgId = c.get('principal').org_id
      const [row] = await c.get('run')(rotateCallbackSecret(orgId, keep_previous_seconds))
      if (!row) throw new Error('A rotation answers the secret')
      const { secret, created_at, previous_expires_at } = row
      return c.json({ secret, created_at, previous_expires_at }, 201)
    })

const getRoute = createRoute({
  method: 'get',
  path: '/callbacks/secret',
  tags: ['callbacks'],
  summary: 'See which secret signs callbacks',
  ...access('webhooks:read'),
  responses: {
    200: jsonContent(secret, 'What is known of it, without itself'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const rotateRoute = createRoute({
  method: 'post',
  path: '/callbacks/secret',
  tags: ['callbacks'],
  summary: 'Make a new secret',
  description:
    'The way to see one: it is shown only in this answer. The one before signs beside it for a day unless told otherwise, so ' +
    'that callbacks verify with either; one that was before that ends at once.',
  ...access('webhooks:manage', jsonBody()),
  request: { body: jsonRequest(rotation) },
  responses: {
    201: jsonContent(rotatedSecret, 'The secret'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden'),
  },
})
