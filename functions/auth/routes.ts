import { createRoute, type z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { type Account, findAccount, registerAccount } from '../../db/queries/accounts.ts'
import { rotateRefreshToken, startRefreshFamily } from '../../db/queries/refresh-tokens.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { AppEnv } from '../context.ts'
import { jsonBody } from '../http/json-body.ts'
import { jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import type { Services } from '../services.ts'
import { ACCESS_TOKEN_SECONDS, signAccessToken } from './access-token.ts'
import { hashPassword, spendPasswordCheck, verifyPassword } from './passwords.ts'
import { createRefreshToken, hashRefreshToken, REFRESH_TOKEN_DAYS } from './refresh-token.ts'
import { credentials, refreshRequest, registration, session } from './schemas.ts'

export const authRoutes = () => {
  const router = createRouter()
  router.use('/auth/*', keepOutOfCaches)
  return router
    .openapi(registerRoute, async (c) => {
      const services = c.get('services')
      return c.json(await register(services, c.req.valid('json')), 201)
    })
    .openapi(loginRoute, async (c) => {
      const services = c.get('services')
      return c.json(await login(services, c.req.valid('json')), 200)
    })
    .openapi(refreshRoute, async (c) => {
      const services = c.get('services')
      return c.json(await refresh(services, c.req.valid('json').refresh_token), 200)
    })
}

const keepOutOfCaches: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  c.header('cache-control', 'no-store')
}

const registerRoute = createRoute({
  method: 'post',
  path: '/auth/register',
  tags: ['auth'],
  summary: 'Create an account and its personal organisation',
  middleware: jsonBody(),
  request: { body: jsonRequest(registration) },
  responses: {
    201: jsonContent(session, 'Signed in to the new account'),
    ...problems(
      'malformed-body',
      'username-taken',
      'body-too-large',
      'unsupported-media-type',
      'invalid-request',
    ),
  },
})

const loginRoute = createRoute({
  method: 'post',
  path: '/auth/login',
  tags: ['auth'],
  summary: 'Sign in',
  middleware: jsonBody(),
  request: { body: jsonRequest(credentials) },
  responses: {
    200: jsonContent(session, 'Signed in'),
    ...problems(
      'malformed-body',
      'wrong-credentials',
      'body-too-large',
      'unsupported-media-type',
      'invalid-request',
    ),
  },
})

const refreshRoute = createRoute({
  method: 'post',
  path: '/auth/refresh',
  tags: ['auth'],
  summary: 'Exchange a refresh token for a new session',
  description: 'A refresh token is good once. Presenting it a second time ends the whole sign-in.',
  middleware: jsonBody(),
  request: { body: jsonRequest(refreshRequest) },
  responses: {
    200: jsonContent(session, 'A new access token and the next refresh token'),
    ...problems(
      'malformed-body',
      'refresh-token-invalid',
      'body-too-large',
      'unsupported-media-type',
      'invalid-request',
    ),
  },
})

type Session = z.output<typeof session>

const register = async (services: Services, body: z.output<typeof registration>): Promise<Session> => {
  const [passwordHash, refreshToken] = await Promise.all([hashPassword(body.password), createRefreshToken()])
  const [account] = await services.run(
    registerAccount({
      userId: uuidV7(),
      orgId: uuidV7(),
      familyId: uuidV7(),
      username: body.username,
      passwordHash,
      refreshTokenHash: refreshToken.hash,
      refreshTokenDays: REFRESH_TOKEN_DAYS,
    }),
  )
  if (!account) {
    throw new ProblemError(
      'username-taken',
      `"${body.username}" is taken. Choose another name, or sign in.`,
      {
        errors: [{ in: 'body', pointer: '#/username', detail: 'is taken' }],
      },
    )
  }
  return toSession(services, account, refreshToken.token)
}

const login = async (services: Services, body: z.output<typeof credentials>): Promise<Session> => {
  const [account] = await services.run(findAccount(body.username))
  if (!account) await spendPasswordCheck(body.password)
  if (!account || !(await verifyPassword(body.password, account.password_hash))) {
    throw new ProblemError('wrong-credentials', 'Check both, or register with POST /auth/register.')
  }
  const refreshToken = await createRefreshToken()
  await services.run(
    startRefreshFamily({
      familyId: uuidV7(),
      userId: account.user_id,
      orgId: account.org_id,
      tokenHash: refreshToken.hash,
      days: REFRESH_TOKEN_DAYS,
    }),
  )
  return toSession(services, account, refreshToken.token)
}

const refresh = async (services: Services, presented: string): Promise<Session> => {
  const successor = await createRefreshToken()
  const [account] = await services.run(
    rotateRefreshToken({
      presentedHash: await hashRefreshToken(presented),
      successorHash: successor.hash,
      days: REFRESH_TOKEN_DAYS,
    }),
  )
  if (!account) throw new ProblemError('refresh-token-invalid', 'Sign in again with POST /auth/login.')
  return toSession(services, account, successor.token)
}

const toSession = async (services: Services, account: Account, refreshToken: string): Promise<Session> => ({
  user: { id: account.user_id, username: account.username, role: account.role, org_id: account.org_id },
  access_token: await signAccessToken(services.keys, account),
  refresh_token: refreshToken,
  expires_in: ACCESS_TOKEN_SECONDS,
})
