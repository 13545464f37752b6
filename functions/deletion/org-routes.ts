import { createRoute, z } from '@hono/zod-openapi'
import { deleteOrg, listOrgDeletions } from '../../db/queries/deletion.ts'
import { getOrg } from '../../db/queries/orgs.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { access, enterAs, noSuchOrg } from '../auth/permit.ts'
import { hashOwnPassword, wrongPassword } from '../auth/sign-in.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import type { ProblemError } from '../http/problem.ts'
import { createRouter, problemAt } from '../http/validation.ts'
import { closedOrg, deletedOrg, orgDeletion } from './schemas.ts'

export const orgDeletionRoutes = () =>
  createRouter()
    .openapi(deleteRoute, async (c) => {
      const { name, password } = c.req.valid('json')
      const { org_id: orgId, user_id: userId, session_id: sessionId } = c.get('principal')
      if (sessionId === null) throw new Error('Only a session can delete an organisation')
      const run = c.get('run')
      const [org] = await run(getOrg(orgId, userId))
      if (!org) throw noSuchOrg(orgId)
      // Checked before the password, because each password check counts as a sign-in attempt.
      if (org.name !== name) throw wrongName(org.name)
      const { hash, headers } = await hashOwnPassword(run, userId, originOf(c), password)
      const [deletion] = await run(
        deleteOrg({ orgId, name, passwordHash: hash, sessionId, spareOrgId: uuidV7() }),
      )
      switch (deletion?.outcome) {
        case 'deleted':
          return c.json({ id: orgId, name, next_org_id: deletion.next_org_id }, 202)
        case 'wrong_name':
          throw wrongName(org.name)
        case 'refused':
          throw wrongPassword('#/password', headers)
        default:
          throw noSuchOrg(orgId)
      }
    })
    .openapi(deletionsRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const run = enterAs(c, { leastRole: 'admin', allOrgs: true })
      const rows = await run(listOrgDeletions({ after: cursor ?? null, limit: limit + 1 }))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: (row) => row }), 200)
    })

const wrongName = (name: string): ProblemError =>
  problemAt('invalid-request', [
    { in: 'body', pointer: '#/name', detail: `must be the name of the organisation, "${name}"` },
  ])

const deleteRoute = createRoute({
  method: 'delete',
  path: '/orgs/me',
  tags: ['organisations'],
  summary: 'Delete the active organisation',
  description:
    'Closed immediately for all members, sign-ins, API keys, webhooks and schedules; waiting jobs never run, and ' +
    'running ones are stopped. Its data is then removed in the background. This cannot be undone: export the data with ' +
    '`GET /orgs/me/export` first. Counts as a sign-in attempt.',
  ...access('org:manage', jsonBody()),
  request: { body: jsonRequest(orgDeletion) },
  responses: {
    202: jsonContent(closedOrg, 'Closed; its data is being removed'),
    ...problems(
      ...BODY_PROBLEMS,
      'unauthenticated',
      'wrong-credentials',
      'forbidden',
      'not-found',
      'rate-limited',
    ),
  },
})

const deletionsRoute = createRoute({
  method: 'get',
  path: '/orgs/deletions',
  tags: ['organisations'],
  summary: 'List deleted organisations',
  ...access('platform'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(
      pageOf(deletedOrg),
      'A page of deletions, in the order in which the organisations were created',
    ),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})
