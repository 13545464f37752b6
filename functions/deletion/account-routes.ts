import { createRoute } from '@hono/zod-openapi'
import { nameOf } from '../../db/queries/accounts.ts'
import { deleteAccount, listOwnOrgs } from '../../db/queries/deletion.ts'
import { access } from '../auth/permit.ts'
import { hashOwnPassword, wrongPassword } from '../auth/sign-in.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { accountDeletion, closedAccount, ownAccount } from './schemas.ts'

export const accountDeletionRoutes = () =>
  createRouter()
    .openapi(accountRoute, async (c) => {
      const { user_id: id } = c.get('principal')
      const [[user], orgs] = await Promise.all([c.get('run')(nameOf(id)), c.get('run')(listOwnOrgs())])
      if (!user) throw new Error('A session without a user')
      return c.json({ id, username: user.username, orgs }, 200)
    })
    .openapi(deleteRoute, async (c) => {
      const { password } = c.req.valid('json')
      const run = c.get('run')
      const { user_id: userId } = c.get('principal')
      const { hash, headers } = await hashOwnPassword(run, userId, originOf(c), password)
      const [deletion] = await run(deleteAccount(hash))
      if (deletion?.outcome === 'blocked') throw lastOrgAdmin(deletion.orgs)
      if (deletion?.outcome !== 'deleted') throw wrongPassword('#/password', headers)
      return c.json({ deleted_orgs: deletion.orgs }, 202)
    })

const lastOrgAdmin = (orgs: readonly { name: string }[]): ProblemError =>
  new ProblemError(
    'last-org-admin',
    `You are the last org_admin of ${orgs.map(({ name }) => `"${name}"`).join(', ')}. ` +
      'First make another member org_admin there, or delete the organisation.',
  )

const accountRoute = createRoute({
  method: 'get',
  path: '/auth/account',
  tags: ['auth'],
  summary: 'See your account, and what deleting it would do',
  ...access('account'),
  responses: {
    200: jsonContent(ownAccount, 'The account'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const deleteRoute = createRoute({
  method: 'delete',
  path: '/auth/account',
  tags: ['auth'],
  summary: 'Delete your account',
  description:
    'Removes your name, password, sign-ins, API keys, memberships and invitations immediately. Organisations of which ' +
    'you are the only member are deleted as with `DELETE /orgs/me`. In other organisations your jobs and the audit log stay, ' +
    'without your name. This cannot be undone: export your data with `GET /auth/account/export` first. Counts as a sign-in attempt.',
  ...access('account', jsonBody()),
  request: { body: jsonRequest(accountDeletion) },
  responses: {
    202: jsonContent(closedAccount, 'Deleted; the data of deleted organisations is being removed'),
    ...problems(
      ...BODY_PROBLEMS,
      'unauthenticated',
      'wrong-credentials',
      'forbidden',
      'last-org-admin',
      'rate-limited',
    ),
  },
})
