import type { Context } from 'hono'
import { z } from 'zod'
import type { Origin } from '../../db/queries/scope.ts'
import type { AppEnv } from '../context.ts'

const address = z.union([z.ipv4(), z.ipv6()])
const MAX_USER_AGENT = 256

/** Where a request came from, as far as the proxy in front can be trusted. */
export const originOf = (c: Context<AppEnv>): Origin => {
  const header = c.get('services').clientAddressHeader
  return {
    ip: header === undefined ? null : clientAddress(c.req.header(header)),
    userAgent: c.req.header('user-agent')?.slice(0, MAX_USER_AGENT).toWellFormed() ?? null,
    requestId: c.get('requestId'),
  }
}

/**
 * The last entry of a list such as `X-Forwarded-For`, which our proxy appended. The client may have sent the
 * entries before it.
 */
const clientAddress = (value = ''): string | null => {
  const given = address.safeParse(value.split(',').at(-1)?.trim())
  return given.success ? given.data : null
}
