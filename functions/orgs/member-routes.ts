import { createRoute, z } from '@hono/zod-openapi'
import { changeMember, listMembers, type MemberChange, type MemberRow } from '../../db/queries/members.ts'
import { isAtLeast } from '../../db/rules/roles.ts'
import { access, enterAs, forbidden } from '../auth/permit.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { member, roleChange } from './schemas.ts'

export const memberRoutes = () =>
  createRouter()
    .openapi(listMembersRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { orgId: c.get('principal').org_id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listMembers(page))
      return c.json(toPage(rows, limit, { position: (row) => row.user_id, item: viewMember }), 200)
    })
    .openapi(changeRoleRoute, async (c) => {
      const { id: userId } = c.req.valid('param')
      const { role } = c.req.valid('json')
      const change = { orgId: c.get('principal').org_id, userId, role }
      return c.json(viewMember(done(userId, (await c.get('run')(changeMember(change)))[0])), 200)
    })
    .openapi(removeMemberRoute, async (c) => {
      const { id: userId } = c.req.valid('param')
      const { org_id: orgId, user_id, role } = c.get('principal')
      const leastRole = userId === user_id ? 'user' : 'org_admin'
      if (!isAtLeast(role, leastRole)) throw forbidden(leastRole)
      const run = enterAs(c, { leastRole })
      done(userId, (await run(changeMember({ orgId, userId, role: null })))[0])
      return c.body(null, 204)
    })

const done = (userId: string, change: MemberChange | undefined): MemberChange => {
  if (!change) throw new ProblemError('not-found', `There is no member ${userId} in this organisation.`)
  if (change.done) return change
  throw new ProblemError(
    'last-org-admin',
    `${change.username} is the last org_admin. Make another one first.`,
  )
}

const viewMember = ({ user_id, username, role, joined_at }: MemberRow): z.output<typeof member> => ({
  user_id,
  username,
  role,
  joined_at,
})

const listMembersRoute = createRoute({
  method: 'get',
  path: '/orgs/me/members',
  tags: ['organisations'],
  summary: 'List the members',
  ...access('org:read'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(member), 'A page of members of the active organisation'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const changeRoleRoute = createRoute({
  method: 'patch',
  path: '/orgs/me/members/{id}',
  tags: ['organisations'],
  summary: "Change a member's role",
  description: 'Holds from the next request of the member on. The last org_admin stays one.',
  ...access('org:manage', jsonBody()),
  request: { params: pathId, body: jsonRequest(roleChange) },
  responses: {
    200: jsonContent(member, 'The member'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'not-found', 'last-org-admin'),
  },
})

const removeMemberRoute = createRoute({
  method: 'delete',
  path: '/orgs/me/members/{id}',
  tags: ['organisations'],
  summary: 'Remove a member, or leave',
  description:
    'With the membership go its sign-ins in this organisation, its API keys and the invitations that it made, at once. ' +
    'Jobs stay. Everybody may remove themselves, only an org_admin others; the last org_admin cannot go.',
  ...access('org:leave'),
  request: { params: pathId },
  responses: {
    204: { description: 'Removed' },
    ...problems('unauthenticated', 'forbidden', 'not-found', 'last-org-admin'),
  },
})
