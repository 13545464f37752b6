import type { Query } from '../query.ts'

export type RateLimit = { action: string; limit: number; windowSeconds: number }

/** `resets_in`: seconds until the oldest of the hits that count leaves the window. */
export type RateVerdict = { admitted: boolean; remaining: number; resets_in: number }

/** One more hit of a network, if there is room for it. See `db/accounts/rate-limits.sql`. */
export const hitRateLimit = (limit: RateLimit, ip: string | null): Query<RateVerdict> => ({
  name: 'hit-rate-limit',
  text: `
    select admitted, remaining, resets_in
    from smartqueue.hit_rate_limit($1::text, $2::inet, $3::integer, $4::integer)`,
  values: [limit.action, ip, limit.limit, limit.windowSeconds],
})
