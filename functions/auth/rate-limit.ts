import type { RateLimit, RateVerdict } from '../../db/queries/rate-limits.ts'
import { ProblemError } from '../http/problem.ts'

/** For each network: an IPv4 address, or the /64 of an IPv6 one. */
export const LIMITS = {
  register: { action: 'register', limit: 5, windowSeconds: 60 },
  login: { action: 'login', limit: 10, windowSeconds: 60 },
  /** Invitations tell which names there are: not to be tried one after the other. */
  invite: { action: 'invite', limit: 30, windowSeconds: 60 },
} as const satisfies Record<string, RateLimit>

/** As in draft-ietf-httpapi-ratelimit-headers. */
export const rateHeaders = (limit: RateLimit, verdict: RateVerdict): Record<string, string> => ({
  'ratelimit-policy': `"${limit.action}";q=${limit.limit};w=${limit.windowSeconds}`,
  ratelimit: `"${limit.action}";r=${Math.max(0, verdict.remaining)};t=${verdict.resets_in}`,
})

export const rateLimited = (
  limit: RateLimit,
  verdict: RateVerdict = { admitted: false, remaining: 0, resets_in: limit.windowSeconds },
): ProblemError =>
  new ProblemError(
    'rate-limited',
    `At most ${limit.limit} a minute from one network. Try again in ${seconds(verdict.resets_in)}.`,
    { headers: { ...rateHeaders(limit, verdict), 'retry-after': String(verdict.resets_in) } },
  )

/** Too many attempts on one name, from wherever. */
export const nameBlocked = (forSeconds: number, headers: Record<string, string>): ProblemError =>
  new ProblemError(
    'rate-limited',
    `Too many attempts to sign in under this name. Try again in ${seconds(forSeconds)}.`,
    { headers: { ...headers, 'retry-after': String(forSeconds) } },
  )

const seconds = (count: number): string => (count === 1 ? 'a second' : `${count} seconds`)
