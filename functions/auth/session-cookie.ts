/**
 * Who keeps the refresh token: the client, which gets it in the body and sends it there; or, if the request says
 * `smartqueue-session: cookie`, the browser, in a cookie that no script can read.
 *
 * A browser sends a cookie whoever wrote the page that asks. The header is what no other page can send: across origins it
 * takes a preflight, which allows it to nobody (`crossOrigin`). Without it a cookie counts for nothing.
 */
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { AppEnv } from '../context.ts'
import { ProblemError } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import { REFRESH_TOKEN_DAYS, type RefreshKind } from './refresh-kinds.ts'

const HEADER = 'smartqueue-session'

export const sessionHeaders = z.object({
  [HEADER]: z.literal('cookie').optional().openapi({
    description:
      'For pages of this origin: the refresh token is kept in a cookie that scripts cannot read, and not in the body.',
  }),
})

export type TokenKeeper = {
  readonly kind: RefreshKind
  /** The token that the request presents. Undefined: the browser has none, or none any more. */
  presented(body: { refresh_token?: string | undefined }): string | undefined
  /** What the body of the answer says of a token that was issued, and the headers that go with it. */
  keep(token: string): { inBody: string | null; headers: Record<string, string> }
  /** Headers for when it is worth nothing any more. */
  forget(): Record<string, string>
}

export const tokenKeeper = (c: Context<AppEnv>): TokenKeeper => {
  if (c.req.header(HEADER) === undefined) return client
  refuseOtherOrigins(c)
  return browser(c)
}

const client: TokenKeeper = {
  kind: 'refresh',
  presented: ({ refresh_token }) => {
    if (refresh_token === undefined) throw wrongField('is required')
    return refresh_token
  },
  keep: (token) => ({ inBody: token, headers: {} }),
  forget: () => ({}),
}

const browser = (c: Context<AppEnv>): TokenKeeper => {
  const isSecure = new URL(c.req.url).protocol === 'https:'
  // A name with this prefix cannot be set over http, by whoever is in between.
  const name = isSecure ? '__Secure-smartqueue_session' : 'smartqueue_session'
  const flags = `Path=/auth; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  const cookie = (value: string, maxAge: number) => ({
    'set-cookie': `${name}=${value}; Max-Age=${maxAge}; ${flags}`,
  })
  return {
    kind: 'browser-refresh',
    presented: ({ refresh_token }) => {
      if (refresh_token !== undefined) throw wrongField(`does not go with ${HEADER}: cookie`)
      return cookieNamed(name, c.req.header('cookie') ?? '')
    },
    keep: (token) => ({ inBody: null, headers: cookie(token, REFRESH_TOKEN_DAYS * 86_400) }),
    forget: () => cookie('', 0),
  }
}

/** Ours hold letters, digits and `_` only: nothing of it is ever quoted or encoded. */
const cookieNamed = (name: string, header: string): string | undefined =>
  header
    .split(/; */)
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)

const wrongField = (detail: string): ProblemError =>
  problemAt('invalid-request', [{ in: 'body', pointer: '#/refresh_token', detail }])

/**
 * A second lock on the same door. Browsers say where a request comes from, and no page can make them lie; those of before
 * 2023 say it by `origin` alone. The host is compared, not the scheme: what stands in front of us may end TLS.
 */
const refuseOtherOrigins = (c: Context<AppEnv>): void => {
  const site = c.req.header('sec-fetch-site')
  const origin = c.req.header('origin')
  const isOwn =
    site === undefined
      ? origin === undefined || hostOf(origin) === new URL(c.req.url).host
      : site === 'same-origin' || site === 'none'
  if (!isOwn) throw new ProblemError('forbidden', `Only pages of this origin may send ${HEADER}.`)
}

/** `null` is the origin of pages that have none. */
const hostOf = (origin: string): string | undefined => URL.parse(origin)?.host
