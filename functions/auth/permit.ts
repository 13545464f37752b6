import type { Context, MiddlewareHandler } from 'hono'
import { type Entry, type EntryOptions, enter } from '../../db/queries/scope.ts'
import type { Run } from '../../db/query.ts'
import { isAtLeast, type Role } from '../../db/rules/roles.ts'
import type { AppEnv } from '../context.ts'
import { NotEntered } from '../database-errors.ts'
import { uuid } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { ProblemError } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import type { Services } from '../services.ts'
import { PERMISSIONS, type Permission } from './permissions.ts'
import { memberOf, type Principal } from './principal.ts'
import { isSecret } from './secrets.ts'

/** Names the organisation that an admin looks at. */
export const ORG_HEADER = 'smartqueue-org'

/**
 * What makes a route need a permission. `then` runs once it is granted: nobody else makes us read a body. The route gets
 * `principal`, and `run`, whose every transaction has the database look again whether the principal still may.
 */
export const access = (permission: Permission, ...then: MiddlewareHandler<AppEnv>[]) => ({
  security: [{ bearer: [] }],
  'x-permission': permission,
  middleware: [permit(permission), ...then],
})

const permit =
  (permission: Permission): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const principal = await identify(c)
    const { role } = PERMISSIONS[permission]
    if (principal.scopes && !principal.scopes.includes(permission)) throw outOfScope(permission)
    if (!isAtLeast(principal.role, role)) throw forbidden(role)
    const orgId = chosenOrg(c, principal)
    if (permission === 'account' && orgId !== principal.org_id) throw notOfOrg()
    c.set('principal', { ...principal, org_id: orgId })
    c.set('homeOrgId', principal.org_id)
    c.set('run', enterAs(c, { leastRole: role }))
    await next()
  }

/**
 * Runs statements as the principal of the request, with more or less in sight than the route has by itself, or in another
 * organisation. An organisation that the request names and that the principal is not in does not exist for
 * them. `then` runs after they have entered.
 */
export const enterAs = (
  c: Context<AppEnv>,
  options: EntryOptions & { orgId?: string },
  ...then: Entry[]
): Run => {
  const { orgId = c.get('principal').org_id, ...rest } = options
  const member = { ...memberOf(c.get('principal')), orgId }
  // Built for each statement and not for each request: most submissions run none here.
  const run: Run = (query) =>
    c.get('services').database.after(enter(member, { origin: originOf(c), ...rest }), ...then)(query)
  if (orgId === c.get('homeOrgId')) return run
  return (query) =>
    run(query).catch((error: unknown) => {
      throw error instanceof NotEntered && error.reason === 'unknown' ? noSuchOrg(orgId) : error
    })
}

export const noSuchOrg = (id: string): ProblemError =>
  new ProblemError('not-found', `You are in no organisation ${id}.`)

const BEARER = /^Bearer +([\w.-]+)$/i

const identify = async (c: Context<AppEnv>): Promise<Principal> => {
  const header = c.req.header('authorization')
  if (!header) {
    throw unauthenticated('Send an access token (POST /auth/login) or an API key as authorization: Bearer ….')
  }
  const token = BEARER.exec(header)?.[1] ?? ''
  const services = c.get('services')
  if (isSecret('api-key', token)) return holderOf(services, token)
  const verdict = await services.tokens.verify(token)
  if (verdict === 'expired') throw unauthenticated('The access token has expired. POST /auth/refresh.', true)
  if (verdict === 'invalid') throw unauthenticated('The access token is not valid.', true)
  return verdict
}

const holderOf = async ({ apiKeys }: Services, key: string): Promise<Principal> => {
  const principal = await apiKeys.find(key)
  if (!principal) throw unauthenticated('The API key is unknown, was revoked or has expired.', true)
  return principal
}

/** An admin looks at the organisation that the header names. */
const chosenOrg = (c: Context<AppEnv>, principal: Principal): string => {
  const named = c.req.header(ORG_HEADER)
  if (named === undefined || named === principal.org_id) return principal.org_id
  if (principal.role !== 'admin') {
    throw new ProblemError(
      'forbidden',
      `Only an admin may send ${ORG_HEADER}. POST /orgs/{id}/switch instead.`,
    )
  }
  if (!uuid.safeParse(named).success) throw noSuchOrg(named.slice(0, 40))
  return named
}

/** One's own account is the same whatever organisation one looks at. */
const notOfOrg = (): ProblemError =>
  problemAt('invalid-request', [
    { in: 'header', pointer: `#/${ORG_HEADER}`, detail: 'does not go with a request about your own account' },
  ])

/** An admin who has named no organisation sees all of them. */
export const seesAllOrgs = (c: Context<AppEnv>): boolean =>
  c.get('principal').role === 'admin' && c.req.header(ORG_HEADER) === undefined

export const forbidden = (role: Role): ProblemError =>
  new ProblemError('forbidden', `This needs the role ${role}.`)

const outOfScope = (permission: Permission): ProblemError =>
  PERMISSIONS[permission].key
    ? new ProblemError('forbidden', `The API key was not given the scope ${permission}.`)
    : new ProblemError('forbidden', 'This is not for API keys. Sign in as a person.')

/** The token is genuine, but what it stands for has ended. */
export const membershipEnded = (): ProblemError =>
  unauthenticated('The sign-in, the API key or the membership in the organisation has ended.', true)

const unauthenticated = (detail: string, invalidToken = false): ProblemError =>
  new ProblemError('unauthenticated', detail, {
    headers: { 'www-authenticate': invalidToken ? 'Bearer error="invalid_token"' : 'Bearer' },
  })
