import { createMiddleware } from 'hono/factory'
import { hashSecret } from '../auth/secrets.ts'
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

/** By hashes, which nobody can steer: how long it takes to compare them tells nothing of the right token. */
const isSame = async (sent: string, right: string): Promise<boolean> =>
  (await hashSecret(sent)) === (await hashSecret(right))
