import { createRoute } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { jsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, problems } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { access } from './permit.ts'
import {
  credentials,
  jwks,
  passwordChange,
  passwordChanged,
  refreshRequest,
  registration,
  registrationPolicy,
  session,
} from './schemas.ts'
import { sessionHeaders, type TokenKeeper, tokenKeeper } from './session-cookie.ts'
import { viewSession } from './session-view.ts'
import { login, logout, refresh, register, replacePassword, type SignedIn } from './sign-in.ts'

/** Registration, sign-in and its end. */
export const sessionRoutes = () =>
  createRouter()
    .openapi(registerRoute, async (c) => {
      const keeper = tokenKeeper(c)
      const signedIn = await register(c.get('services'), originOf(c), c.req.valid('json'), keeper.kind)
      const { view, headers } = await answerSession(c, keeper, signedIn)
      return c.json(view, 201, { ...signedIn.headers, ...headers })
    })
    .openapi(registrationRoute, (c) => c.json({ registration: c.get('services').registration }, 200))
    .openapi(loginRoute, async (c) => {
      const keeper = tokenKeeper(c)
      const how = { kind: keeper.kind, hold: holdOf(c) }
      const signedIn = await login(c.get('services'), originOf(c), c.req.valid('json'), how)
      const { view, headers } = await answerSession(c, keeper, signedIn)
      return c.json(view, 200, { ...signedIn.headers, ...headers })
    })
    .openapi(refreshRoute, async (c) => {
      const keeper = tokenKeeper(c)
      const token = { presented: keeper.presented(c.req.valid('json')), kind: keeper.kind }
      const signedIn = await refresh(c.get('services'), originOf(c), token)
      if (!signedIn) throw refreshTokenInvalid(keeper)
      const { view, headers } = await answerSession(c, keeper, signedIn)
      return c.json(view, 200, headers)
    })
    .openapi(logoutRoute, async (c) => {
      const keeper = tokenKeeper(c)
      const presented = keeper.presented(c.req.valid('json'))
      if (presented !== undefined)
        c.set('changedOrgId', await logout(c.get('services'), originOf(c), presented))
      return c.body(null, 204, keeper.forget())
    })
    .openapi(passwordRoute, async (c) => {
      const change = c.req.valid('json')
      return c.json(await replacePassword(c.get('run'), c.get('principal'), originOf(c), change), 200)
    })
    .openapi(jwksRoute, (c) =>
      c.json({ keys: [...c.get('services').keys.publicKeys] }, 200, {
        'cache-control': 'public, max-age=300',
      }),
    )

const refreshTokenInvalid = (keeper: TokenKeeper): ProblemError =>
  new ProblemError('refresh-token-invalid', 'Sign in again with POST /auth/login.', {
    headers: keeper.forget(),
  })

const answerSession = async (
  c: Context<AppEnv>,
  keeper: TokenKeeper,
  { account, refreshToken }: Omit<SignedIn, 'headers'>,
) => {
  const { inBody, headers } = keeper.keep(refreshToken)
  return {
    view: { ...(await viewSession(c.get('services').keys, account)), refresh_token: inBody },
    headers,
  }
}

const registerRoute = createRoute({
  method: 'post',
  path: '/auth/register',
  tags: ['auth'],
  summary: 'Create an account',
  description:
    'The account gets a personal organisation or, with the token of an invitation link, joins the organisation that ' +
    'sent it. The operator decides who may register: see `GET /auth/registration`. At most 5 a minute per network: ' +
    'an IPv4 address, or the /64 of an IPv6 one.',
  middleware: jsonBody(),
  request: { headers: sessionHeaders, body: jsonRequest(registration) },
  responses: {
    201: jsonContent(session, 'Signed in to the new account'),
    ...problems(
      ...BODY_PROBLEMS,
      'forbidden',
      'registration-closed',
      'not-found',
      'username-taken',
      'rate-limited',
    ),
  },
})

const registrationRoute = createRoute({
  method: 'get',
  path: '/auth/registration',
  tags: ['auth'],
  summary: 'See who may create an account',
  responses: { 200: jsonContent(registrationPolicy, 'The registration policy') },
})

const loginRoute = createRoute({
  method: 'post',
  path: '/auth/login',
  tags: ['auth'],
  summary: 'Sign in',
  description:
    'At most 10 a minute from one network, whether they succeed or not. After 10 attempts on one name without a ' +
    'success, each further one must wait for twice as long as the one before, up to a quarter of an hour.',
  middleware: jsonBody(),
  request: { headers: sessionHeaders, body: jsonRequest(credentials) },
  responses: {
    200: jsonContent(session, 'Signed in'),
    ...problems(...BODY_PROBLEMS, 'wrong-credentials', 'forbidden', 'rate-limited'),
  },
})

const refreshRoute = createRoute({
  method: 'post',
  path: '/auth/refresh',
  tags: ['auth'],
  summary: 'Exchange a refresh token for a new session',
  description:
    'A refresh token is good once. Presenting it a second time ends the whole sign-in; a cookie, more than ten seconds later.',
  middleware: jsonBody(),
  request: { headers: sessionHeaders, body: jsonRequest(refreshRequest) },
  responses: {
    200: jsonContent(session, 'A new access token and the next refresh token'),
    ...problems(...BODY_PROBLEMS, 'refresh-token-invalid', 'forbidden'),
  },
})

const logoutRoute = createRoute({
  method: 'post',
  path: '/auth/logout',
  tags: ['auth'],
  summary: 'End a sign-in',
  description: 'Its refresh tokens and its access tokens are worth nothing from then on.',
  middleware: jsonBody(),
  request: { headers: sessionHeaders, body: jsonRequest(refreshRequest) },
  responses: {
    204: { description: 'It has ended, or never was' },
    ...problems(...BODY_PROBLEMS, 'forbidden'),
  },
})

const passwordRoute = createRoute({
  method: 'post',
  path: '/auth/password',
  tags: ['auth'],
  summary: 'Change the password',
  description:
    'Ends all other sign-ins of the account and, on request, revokes its API keys. Counts as a sign-in attempt.',
  ...access('account', jsonBody()),
  request: { body: jsonRequest(passwordChange) },
  responses: {
    200: jsonContent(passwordChanged, 'Changed'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'wrong-credentials', 'forbidden', 'rate-limited'),
  },
})

const jwksRoute = createRoute({
  method: 'get',
  path: '/.well-known/jwks.json',
  tags: ['auth'],
  summary: 'The public keys of access tokens',
  description: 'For services that want to check a token themselves. The header of a token names its key.',
  responses: { 200: jsonContent(jwks, 'A JSON Web Key Set') },
})
