import type { MiddlewareHandler } from 'hono'
import { cors } from 'hono/cors'
import { secureHeaders } from 'hono/secure-headers'
import type { AppEnv } from '../context.ts'

/** What browsers may do with our answers: nothing but what is said here. Pages are assets, with headers of their own. */
export const securityHeaders = (): MiddlewareHandler<AppEnv> => {
  const setHeaders = secureHeaders({
    contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"], baseUri: ["'none'"] },
    xFrameOptions: 'DENY',
    referrerPolicy: 'no-referrer',
  })
  return async (c, next) => {
    await setHeaders(c, next)
    // Answers are somebody's own, and tokens are among them.
    if (!c.res.headers.has('cache-control')) c.header('cache-control', 'no-store')
  }
}

/** Closed, but to pages of the listed origins. No credentials of the browser are involved: tokens are sent by hand. */
export const crossOrigin = (): MiddlewareHandler<AppEnv> => {
  const allow = cors({
    origin: (origin, c) => (c.get('services').corsOrigins.includes(origin) ? origin : undefined),
    allowMethods: ['GET', 'POST', 'PATCH', 'DELETE'],
    allowHeaders: ['authorization', 'content-type', 'idempotency-key', 'smartqueue-org', 'traceparent'],
    exposeHeaders: [
      ...['location', 'retry-after', 'ratelimit', 'ratelimit-policy'],
      ...['x-request-id', 'idempotent-replayed', 'www-authenticate'],
    ],
    maxAge: 600,
  })
  return (c, next) => {
    const origin = c.req.header('origin')
    const isListed = origin !== undefined && c.get('services').corsOrigins.includes(origin)
    return isListed ? allow(c, next) : next()
  }
}
