import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../context.ts'
import { ProblemError } from '../http/problem.ts'
import { verifyAccessToken } from './access-token.ts'

const BEARER = /^Bearer +([\w-]+\.[\w-]*\.[\w-]*)$/i

/** Lets a request pass that carries a valid access token, and says who it is: `c.get('principal')`. */
export const requireAuth = (): MiddlewareHandler<AppEnv> => async (c, next) => {
  const header = c.req.header('authorization')
  if (!header) throw unauthenticated('Send an access token as authorization: Bearer … (POST /auth/login).')
  const token = BEARER.exec(header)?.[1]
  const verdict = token ? await verifyAccessToken(c.get('services').keys, token) : 'invalid'
  if (verdict === 'expired') throw unauthenticated('The access token has expired. POST /auth/refresh.', true)
  if (verdict === 'invalid') throw unauthenticated('The access token is not valid.', true)
  c.set('principal', verdict)
  await next()
}

/** The token is genuine, but its user is not a member of its organisation any more. */
export const membershipEnded = (): ProblemError =>
  unauthenticated('This account is not a member of the organisation any more.', true)

const unauthenticated = (detail: string, invalidToken = false): ProblemError =>
  new ProblemError('unauthenticated', detail, {
    headers: { 'www-authenticate': invalidToken ? 'Bearer error="invalid_token"' : 'Bearer' },
  })
