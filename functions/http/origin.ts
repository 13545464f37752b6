import type { Context } from 'hono'
import { z } from 'zod'
import type { Origin } from '../../db/queries/scope.ts'
import type { AppEnv } from '../context.ts'

const address = z.union([z.ipv4(), z.ipv6()])

/** From where a request came. Cloudflare sets the header, whatever the client has sent; so does `wrangler dev`, if it has sent none. */
export const originOf = (c: Context<AppEnv>): Origin => {
  const given = address.safeParse(c.req.header('cf-connecting-ip'))
  return { ip: given.success ? given.data : null, requestId: c.get('requestId') }
}
