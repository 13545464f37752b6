import type { Query } from '../query.ts'

export type RateLimit = { action: string; limit: number; windowSeconds: number }

/** `resets_in`: seconds until the oldest of the hits that count leaves the window. */
export type RateVerdict = { admitted: boolean; remaining: number; resets_in: number }

/**
 * One more hit of a network on a sliding log, if there is room for it. The conflict locks the row, and the update looks at
 * its newest version: of any number of concurrent requests exactly as many pass as may. Parameters from `$1` on: the
 * action, the address, the limit, the seconds.
 */
export const HIT = `
      insert into smartqueue.rate_limits as r (action, subject, hits, admitted, last_hit)
      values (
        $1::text, coalesce(smartqueue.network_of($2::inet), 'unknown'), array[clock_timestamp()], true,
        clock_timestamp()
      )
      on conflict (action, subject) do update
      set
        (hits, admitted) = (
          select
            case
              when count(*) < $3::int then coalesce(array_agg(hit order by hit), '{}') || clock_timestamp()
              else array_agg(hit order by hit)
            end,
            count(*) < $3::int
          from unnest(r.hits) as hit
          where hit > clock_timestamp() - $4::int * interval '1 second'
        ),
        last_hit = clock_timestamp()
      returning
        r.admitted, $3::int - cardinality(r.hits) as remaining,
        greatest(
          1, ceil(extract(epoch from r.hits[1] + $4::int * interval '1 second' - clock_timestamp()))
        )::integer as resets_in`

export const hitRateLimit = (limit: RateLimit, ip: string | null): Query<RateVerdict> => ({
  name: 'hit-rate-limit',
  text: `${HIT}`,
  values: [limit.action, ip, limit.limit, limit.windowSeconds],
})
