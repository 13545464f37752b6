import { createRoute, z } from '@hono/zod-openapi'
import { AUDIT_ACTIONS, listAuditLog } from '../../db/queries/audit.ts'
import { access } from '../auth/permit.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { idPosition, pageFields, pageOf, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { auditEntry } from './schemas.ts'

export const auditRoutes = () =>
  createRouter().openapi(auditRoute, async (c) => {
    const { cursor, limit, action } = c.req.valid('query')
    const orgId = c.get('principal').org_id
    const page = { orgId, action: action ?? null, before: cursor ?? null, limit: limit + 1 }
    const rows = await c.get('run')(listAuditLog(page))
    return c.json(toPage(rows, limit, { position: ({ id }) => id, item: (entry) => entry }), 200)
  })

const auditRoute = createRoute({
  method: 'get',
  path: '/orgs/me/audit',
  tags: ['organisations'],
  summary: 'Read the audit log, newest first',
  description:
    'Who did what in the active organisation, when and from where. Entries are never changed, and are deleted only with the organisation.',
  ...access('audit:read'),
  request: {
    query: z.strictObject({
      action: z.enum(AUDIT_ACTIONS).optional(),
      ...pageFields(idPosition),
    }),
  },
  responses: {
    200: jsonContent(pageOf(auditEntry), 'A page of entries'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})
