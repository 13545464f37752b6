import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { endOwnSessions, listSessions } from '../../db/queries/sessions.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { jsonContent, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { access } from './permit.ts'
import { signInSession } from './schemas.ts'

/** Lists and ends the sign-ins of an account. */
export const signInRoutes = () =>
  createRouter()
    .openapi(listRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const { user_id: userId, session_id } = c.get('principal')
      const rows = await c.get('run')(listSessions({ userId, before: cursor ?? null, limit: limit + 1 }))
      const item = (row: (typeof rows)[number]) => ({
        ...row,
        current: row.id === session_id,
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
      })
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item }), 200)
    })
    .openapi(endRoute, async (c) => {
      const { id } = c.req.valid('param')
      const ended = await c.get('run')(
        endOwnSessions({ id, userId: c.get('principal').user_id, others: false }),
      )
      if (ended.length === 0) throw new ProblemError('not-found', `You have no sign-in ${id}.`)
      closeStreams(c, ended)
      return c.body(null, 204)
    })
    .openapi(endOthersRoute, async (c) => {
      const { user_id: userId, session_id: id } = c.get('principal')
      if (id === null) throw new Error('Only a session can end the others')
      const ended = await c.get('run')(endOwnSessions({ id, userId, others: true }))
      closeStreams(c, ended)
      return c.json({ ended_sessions: ended.length }, 200)
    })

/** Makes streams check their subscribers again, so that those of ended sign-ins are closed. */
const closeStreams = (c: Context<AppEnv>, ended: readonly { org_id: string }[]): void => {
  const { nudger } = c.get('services').streams
  for (const orgId of new Set(ended.map(({ org_id }) => org_id))) nudger.nudge(orgId, holdOf(c))
}

const listRoute = createRoute({
  method: 'get',
  path: '/auth/sessions',
  tags: ['auth'],
  summary: 'List your sign-ins',
  description: 'Active sign-ins in all organisations, newest first.',
  ...access('account'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(signInSession), 'A page of sign-ins'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const endRoute = createRoute({
  method: 'delete',
  path: '/auth/sessions/{id}',
  tags: ['auth'],
  summary: 'End one of your sign-ins',
  description:
    'Takes effect immediately: its refresh token and access tokens are rejected from then on. You may end the current one.',
  ...access('account'),
  request: { params: pathId },
  responses: {
    204: { description: 'Ended' },
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const endOthersRoute = createRoute({
  method: 'delete',
  path: '/auth/sessions',
  tags: ['auth'],
  summary: 'End all your other sign-ins',
  description:
    'Ends all but the current one, with immediate effect. To revoke API keys as well, see `revoke_keys` of `POST /auth/password`.',
  ...access('account'),
  responses: {
    200: jsonContent(z.object({ ended_sessions: z.int() }), 'How many were ended'),
    ...problems('unauthenticated', 'forbidden'),
  },
})
