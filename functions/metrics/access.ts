import { timingSafeEqual } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import type { AppEnv } from '../context.ts'
import { ProblemError } from '../http/problem.ts'

/**
 * What tells how the whole system is, for those who operate it. Open, unless a token is bound: nothing in it belongs to an
 * organisation, but how busy a system is may be nobody's business.
 */
export const forOperators = () =>
  createMiddleware<AppEnv>(async (c, next) => {
    const { operationsToken } = c.get('services')
    if (operationsToken !== undefined) {
      const [scheme, token] = (c.req.header('authorization') ?? '').split(' ')
      const isRight = scheme?.toLowerCase() === 'bearer' && (await isSame(token ?? '', operationsToken))
      if (!isRight) {
        throw new ProblemError('unauthenticated', 'Send the token of OPERATIONS_TOKEN as a bearer token.', {
          headers: { 'www-authenticate': 'Bearer' },
        })
      }
    }
    await next()
  })

/** By digests, which are of one length: how long it takes tells nothing of the right one. */
const isSame = async (sent: string, right: string): Promise<boolean> => {
  const [a, b] = await Promise.all([sent, right].map(digest))
  return a !== undefined && b !== undefined && timingSafeEqual(a, b)
}

const digest = async (text: string): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
