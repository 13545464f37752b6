import { createRoute, z } from '@hono/zod-openapi'
import {
  acceptInvitation,
  createInvitation,
  type InvitationRow,
  listInvitations,
  MAX_PENDING,
  revokeInvitation,
} from '../../db/queries/invitations.ts'
import { hitRateLimit } from '../../db/queries/rate-limits.ts'
import { takeTurns } from '../../db/queries/scope.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { access, enterAs } from '../auth/permit.ts'
import { LIMITS, rateLimited } from '../auth/rate-limit.ts'
import { createSecret, hashSecret } from '../auth/secrets.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter, problemAt } from '../http/validation.ts'
import { acceptance, createdInvitation, invitation, joined, newInvitation, ownInvitation } from './schemas.ts'

export const invitationRoutes = () =>
  createRouter()
    .openapi(inviteRoute, async (c) => {
      const { id: orgId } = c.req.valid('param')
      const { username, role } = c.req.valid('json')
      const origin = originOf(c)
      const [verdict] = await c.get('services').database.run(hitRateLimit(LIMITS.invite, origin.ip))
      if (!verdict?.admitted) throw rateLimited(LIMITS.invite, verdict)
      const id = uuidV7()
      const link = username === undefined ? await createSecret('invitation') : undefined
      const run = enterAs(c, { leastRole: 'org_admin', orgId }, takeTurns('invitations', orgId))
      const [made] = await run(
        createInvitation({
          id,
          orgId,
          role,
          invitedBy: c.get('principal').user_id,
          username: username ?? null,
          tokenHash: link?.hash ?? null,
        }),
      )
      if (!made?.found) {
        throw problemAt('unknown-user', [{ in: 'body', pointer: '#/username', detail: 'is nobody’s name' }])
      }
      if (made.is_member) throw alreadyMember(`${made.username} is a member already.`)
      if (!made.created_at || !made.expires_at) {
        throw new ProblemError(
          'limit-reached',
          `The organisation has ${MAX_PENDING} open invitations. Revoke some first.`,
        )
      }
      return c.json(
        {
          ...{ id, org_id: orgId, role, username: made.username },
          created_at: made.created_at,
          expires_at: made.expires_at,
          token: link?.secret ?? null,
          url: link ? `${new URL(c.req.url).origin}/join#${id}.${link.secret}` : null,
        },
        201,
      )
    })
    .openapi(listPendingRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listInvitations({ orgId: c.get('principal').org_id }, page))
      const item = (row: InvitationRow) => ({
        ...viewInvitation(row),
        username: row.username,
        invited_by: row.invited_by,
      })
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item }), 200)
    })
    .openapi(revokeRoute, async (c) => {
      const { id } = c.req.valid('param')
      const [revoked] = await c.get('run')(revokeInvitation(c.get('principal').org_id, id))
      if (!revoked) throw noSuchInvitation(id)
      return c.body(null, 204)
    })
    .openapi(listOwnRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listInvitations({ userId: c.get('principal').user_id }, page))
      const item = (row: InvitationRow) => ({ ...viewInvitation(row), org_name: row.org_name })
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item }), 200)
    })
    .openapi(acceptRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { token } = c.req.valid('json')
      const tokenHash = token === undefined ? null : await hashSecret(token)
      const [accepted] = await c.get('run')(acceptInvitation({ id, tokenHash }))
      if (!accepted) throw noSuchInvitation(id)
      const { joined: isNew, ...membership } = accepted
      if (!isNew) throw alreadyMember(`You are a member of ${accepted.org_name} already.`)
      return c.json(membership, 200)
    })

const alreadyMember = (detail: string): ProblemError => new ProblemError('already-member', detail)

const noSuchInvitation = (id: string): ProblemError =>
  new ProblemError('not-found', `There is no invitation ${id} for you that is still open.`)

type Shown = Pick<InvitationRow, 'id' | 'org_id' | 'role' | 'created_at' | 'expires_at'>

const viewInvitation = ({ id, org_id, role, created_at, expires_at }: Shown) => ({
  id,
  org_id,
  role,
  created_at,
  expires_at,
})

const inviteRoute = createRoute({
  method: 'post',
  path: '/orgs/{id}/invite',
  tags: ['organisations'],
  summary: 'Invite a member',
  description:
    'A user by name, or without a name whoever gets the link first. Good for 72 hours, until revoked, and as long as you ' +
    'are an org_admin. At most 30 a minute from one network.',
  ...access('org:manage', jsonBody()),
  request: { params: pathId, body: jsonRequest(newInvitation) },
  responses: {
    201: jsonContent(createdInvitation, 'The invitation'),
    ...problems(
      ...BODY_PROBLEMS,
      'unauthenticated',
      'forbidden',
      'not-found',
      'already-member',
      'limit-reached',
      'unknown-user',
      'rate-limited',
    ),
  },
})

const listPendingRoute = createRoute({
  method: 'get',
  path: '/orgs/me/invitations',
  tags: ['organisations'],
  summary: 'List open invitations of the active organisation',
  ...access('org:manage'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(invitation), 'A page of invitations, oldest first'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const revokeRoute = createRoute({
  method: 'delete',
  path: '/orgs/me/invitations/{id}',
  tags: ['organisations'],
  summary: 'Revoke an invitation',
  ...access('org:manage'),
  request: { params: pathId },
  responses: {
    204: { description: 'Revoked' },
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const listOwnRoute = createRoute({
  method: 'get',
  path: '/orgs/invitations',
  tags: ['organisations'],
  summary: 'List invitations for you',
  ...access('account'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(ownInvitation), 'A page of invitations, oldest first'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const acceptRoute = createRoute({
  method: 'post',
  path: '/orgs/invitations/{id}/accept',
  tags: ['organisations'],
  summary: 'Accept an invitation',
  description: 'Send `{}` if you were invited by name, the token if you have a link.',
  ...access('account', jsonBody()),
  request: { params: pathId, body: jsonRequest(acceptance) },
  responses: {
    200: jsonContent(joined, 'You are a member'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'not-found', 'already-member'),
  },
})
