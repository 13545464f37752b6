import { createRoute, z } from '@hono/zod-openapi'
import { createOrg, getOrg, listOrgs, switchOrg } from '../../db/queries/orgs.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { access, enterAs, noSuchOrg } from '../auth/permit.ts'
import { activeSession } from '../auth/schemas.ts'
import { viewSession } from '../auth/session-view.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { activeOrg, newOrg, org } from './schemas.ts'

export const orgRoutes = () =>
  createRouter()
    .openapi(createOrgRoute, async (c) => {
      const { name } = c.req.valid('json')
      const id = uuidV7()
      const { orgsPerAccount: limit } = c.get('services')
      const [row] = await c.get('run')(createOrg({ id, name, limit }))
      if (!row?.created_at) {
        const detail = `You have reached the limit of ${limit} organisations that an account may create, including its personal one.`
        throw new ProblemError('limit-reached', detail)
      }
      const made = { id, name, role: 'org_admin' as const, created_at: row.created_at }
      return c.json(made, 201, { location: '/orgs/me' })
    })
    .openapi(listOrgsRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const { user_id: userId, role } = c.get('principal')
      const everybodys = role === 'admin'
      const run = everybodys ? enterAs(c, { leastRole: 'admin', allOrgs: true }) : c.get('run')
      const rows = await run(listOrgs({ userId, everybodys, after: cursor ?? null, limit: limit + 1 }))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: viewOrg }), 200)
    })
    .openapi(activeOrgRoute, async (c) => {
      const { org_id, user_id } = c.get('principal')
      const [row] = await c.get('run')(getOrg(org_id, user_id))
      if (!row) throw noSuchOrg(org_id)
      return c.json({ ...viewOrg(row), members: row.members }, 200)
    })
    .openapi(switchRoute, async (c) => {
      const { id: orgId } = c.req.valid('param')
      const { user_id: userId, session_id: sessionId, secret } = c.get('principal')
      if (sessionId === null) throw new Error('Only a session can switch')
      const [account] = await enterAs(c, { leastRole: 'user', orgId })(
        switchOrg({ orgId, userId, sessionId }),
      )
      if (!account) throw noSuchOrg(orgId)
      const session = { ...account, session_id: sessionId, secret }
      return c.json(await viewSession(c.get('services').keys, session), 200)
    })

const viewOrg = ({ id, name, role, created_at }: z.output<typeof org>): z.output<typeof org> => ({
  id,
  name,
  role,
  created_at,
})

const createOrgRoute = createRoute({
  method: 'post',
  path: '/orgs',
  tags: ['organisations'],
  summary: 'Create an organisation',
  description: 'You become its org_admin. The active organisation stays; see `POST /orgs/{id}/switch`.',
  ...access('account', jsonBody()),
  request: { body: jsonRequest(newOrg) },
  responses: {
    201: jsonContent(org, 'The organisation'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'limit-reached'),
  },
})

const listOrgsRoute = createRoute({
  method: 'get',
  path: '/orgs',
  tags: ['organisations'],
  summary: 'List your organisations',
  description: 'An admin sees all.',
  ...access('account'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(org), 'A page of organisations, oldest first'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const activeOrgRoute = createRoute({
  method: 'get',
  path: '/orgs/me',
  tags: ['organisations'],
  summary: 'See the active organisation',
  ...access('org:read'),
  responses: {
    200: jsonContent(activeOrg, 'The organisation'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const switchRoute = createRoute({
  method: 'post',
  path: '/orgs/{id}/switch',
  tags: ['organisations'],
  summary: 'Make another organisation the active one',
  description:
    'Answers an access token for it; the refresh token goes on there, too. An admin can look into organisations that ' +
    'they are not a member of, for the life of that access token.',
  ...access('account'),
  request: { params: pathId },
  responses: {
    200: jsonContent(activeSession, 'Signed in to the other organisation'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})
