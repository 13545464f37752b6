import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import {
  type ApiKeyRow,
  createApiKey,
  listApiKeys,
  MAX_KEYS,
  revokeApiKey,
} from '../../db/queries/api-keys.ts'
import { ping } from '../../db/queries/notifications.ts'
import { takeTurns } from '../../db/queries/scope.ts'
import type { Run } from '../../db/query.ts'
import { isAtLeast } from '../../db/rules/roles.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { AppEnv } from '../context.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter, problemAt } from '../http/validation.ts'
import { PERMISSIONS } from './permissions.ts'
import { access, enterAs } from './permit.ts'
import { apiKey, createdApiKey, newApiKey } from './schemas.ts'
import { createSecret } from './secrets.ts'

/** How much of a key is shown later: its kind and 32 of its 256 bits. */
const PREFIX_LENGTH = 'sqk_'.length + 8

export const keyRoutes = () =>
  createRouter()
    .openapi(createKeyRoute, async (c) => {
      const { name, scopes, expires_at } = c.req.valid('json')
      const { user_id, org_id, role } = c.get('principal')
      const beyond = scopes.findIndex((scope) => !isAtLeast(role, PERMISSIONS[scope].role))
      if (beyond >= 0) {
        const detail = `needs the role ${PERMISSIONS[scopes[beyond] ?? 'jobs:read'].role}, which you do not have`
        throw problemAt('invalid-request', [{ in: 'body', pointer: `#/scopes/${beyond}`, detail }])
      }
      const { secret, hash } = await createSecret('api-key')
      const run = enterAs(c, { leastRole: 'user' }, takeTurns('api-keys', org_id))
      const [row] = await run(
        createApiKey({
          id: uuidV7(),
          orgId: org_id,
          userId: user_id,
          name,
          prefix: secret.slice(0, PREFIX_LENGTH),
          hash,
          scopes: [...new Set(scopes)],
          expiresAt: expires_at === undefined ? null : new Date(expires_at).toISOString(),
        }),
      )
      if (!row) {
        // Whoever is no member any more is told so instead.
        await run(ping())
        throw tooManyKeys()
      }
      return c.json({ ...viewKey(row), key: secret }, 201)
    })
    .openapi(listKeysRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = {
        orgId: c.get('principal').org_id,
        userId: ownOnly(c),
        after: cursor ?? null,
        limit: limit + 1,
      }
      const rows = await runFor(c)(listApiKeys(page))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: viewKey }), 200)
    })
    .openapi(revokeKeyRoute, async (c) => {
      const { id } = c.req.valid('param')
      const [revoked] = await runFor(c)(
        revokeApiKey({ id, orgId: c.get('principal').org_id, userId: ownOnly(c) }),
      )
      if (!revoked) throw new ProblemError('not-found', `There is no API key ${id} that you may revoke.`)
      return c.body(null, 204)
    })

const tooManyKeys = (): ProblemError =>
  new ProblemError('limit-reached', `The organisation has ${MAX_KEYS} API keys. Revoke some first.`)

/** A member has their own keys in hand, an org_admin those of all. */
const ownOnly = (c: Context<AppEnv>): string | null => {
  const { role, user_id } = c.get('principal')
  return isAtLeast(role, 'org_admin') ? null : user_id
}

/** That it is still an org_admin who sees those of all is for the database to say. */
const runFor = (c: Context<AppEnv>): Run =>
  ownOnly(c) === null ? enterAs(c, { leastRole: 'org_admin' }) : c.get('run')

const viewKey = (row: ApiKeyRow): z.output<typeof apiKey> => ({
  id: row.id,
  user_id: row.user_id,
  username: row.username,
  name: row.name,
  prefix: row.prefix,
  scopes: row.scopes,
  created_at: row.created_at,
  expires_at: row.expires_at,
  last_used_at: row.last_used_at,
  revoked_at: row.revoked_at,
})

const createKeyRoute = createRoute({
  method: 'post',
  path: '/auth/keys',
  tags: ['auth'],
  summary: 'Make an API key',
  description:
    'For a program, in the active organisation. It acts for you, with the scopes that you give it, and ends when you ' +
    'revoke it, when it expires, or with your membership.',
  ...access('account', jsonBody()),
  request: { body: jsonRequest(newApiKey) },
  responses: {
    201: jsonContent(createdApiKey, 'The key'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'limit-reached'),
  },
})

const listKeysRoute = createRoute({
  method: 'get',
  path: '/auth/keys',
  tags: ['auth'],
  summary: 'List API keys',
  description: 'Your own in the active organisation, oldest first; an org_admin sees those of all members.',
  ...access('account'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(apiKey), 'A page of keys, without the keys themselves'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const revokeKeyRoute = createRoute({
  method: 'delete',
  path: '/auth/keys/{id}',
  tags: ['auth'],
  summary: 'Revoke an API key',
  description: 'At once. An org_admin may revoke the keys of all members.',
  ...access('account'),
  request: { params: pathId },
  responses: {
    204: { description: 'Revoked' },
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
