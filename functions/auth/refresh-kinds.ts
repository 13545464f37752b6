/**
 * The two kinds of refresh tokens. Both are good once, and each is told by its prefix: one cannot be used as the other.
 *
 * A program keeps its own (`refresh`): the next one is random, and presenting one again ends the sign-in.
 *
 * A browser keeps a cookie (`browser-refresh`), and does not always get the answer: a page that is reloaded while it
 * refreshes comes again with the cookie from before, and so does a second tab. So the next one follows from the one
 * before by our signing key, and whoever presents that within ten seconds gets the same next one again. A sign-in still
 * has one token that is good, at any time; if two hold it, one of them comes later than that, and ends it.
 *
 * The first half of a token is the secret of its session, which stays the same: access tokens carry it, and the
 * database, which knows only its hash, opens an organisation to those who have it. The second half is the token's own.
 */
import { SECRET_PREFIXES } from '../redaction.ts'
import type { KeyRing } from './key-ring.ts'
import { deriveBits, hashSecret, isSecret, type Secret, toHex } from './secrets.ts'

export type RefreshKind = 'refresh' | 'browser-refresh'

export const REFRESH_TOKEN_DAYS = 30

const BROWSER_GRACE_SECONDS = 10

export const graceOf = (kind: RefreshKind): number | null =>
  kind === 'browser-refresh' ? BROWSER_GRACE_SECONDS : null

/** What is of neither kind is nobody's. */
export const isOfKind = (kind: RefreshKind, token: string): boolean =>
  isSecret('browser-refresh', token) === (kind === 'browser-refresh')

const HALF = 32

export const sessionSecretOf = (kind: RefreshKind, token: string): string =>
  token.slice(SECRET_PREFIXES[kind].length).slice(0, HALF)

export const successorOf = async (kind: RefreshKind, keys: KeyRing, presented: string): Promise<Secret> => {
  const bits =
    kind === 'browser-refresh'
      ? await deriveBits(keys, `the refresh token after ${presented}`)
      : crypto.getRandomValues(new Uint8Array(HALF / 2))
  const secret = SECRET_PREFIXES[kind] + sessionSecretOf(kind, presented) + toHex(bits).slice(0, HALF)
  return { secret, hash: await hashSecret(secret) }
}
