import { createRoute, z } from '@hono/zod-openapi'
import { listUsers } from '../../db/queries/accounts.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { createRouter } from '../http/validation.ts'
import { access, enterAs } from './permit.ts'
import { account } from './schemas.ts'

export const userRoutes = () =>
  createRouter().openapi(usersRoute, async (c) => {
    const { cursor, limit } = c.req.valid('query')
    const run = enterAs(c, { leastRole: 'admin', allOrgs: true })
    const rows = await run(listUsers({ after: cursor ?? null, limit: limit + 1 }))
    return c.json(
      toPage(rows, limit, {
        position: ({ id }) => id,
        item: (user) => user,
      }),
      200,
    )
  })

const usersRoute = createRoute({
  method: 'get',
  path: '/auth/users',
  tags: ['auth'],
  summary: 'List all users',
  ...access('platform'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(account), 'A page of users, in the order of their registration'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})
