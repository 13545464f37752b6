import type { Query } from '../query.ts'

/** What is deleted once it is older than the retention time. */
export const EXPIRING = [
  'jobs',
  'events',
  'executions',
  'ticks',
  'deliveries',
  'disabled_urls',
  'job_rollups',
  'prediction_rollups',
  'scheduling_gains',
] as const

/** Deletes up to `limit` of the oldest rows of a kind. */
export const deleteExpired = (
  kind: (typeof EXPIRING)[number],
  { term, days, limit }: { term: string; days: number; limit: number },
): Query<{ deleted: number }> => ({
  name: 'delete-expired',
  text: 'select smartqueue.delete_expired($1::bigint, $2::text, $3::double precision, $4::int) as deleted',
  values: [term, kind, days, limit],
})

/** Deletes small things that are no longer valid or needed, such as idempotency keys and refresh tokens. */
export const deleteStale = (term: string, days: number): Query<never> => ({
  name: 'delete-stale',
  text: 'select smartqueue.delete_stale($1::bigint, $2::double precision)',
  values: [term, days],
})

/** Looks at the next series and forgets the idle ones. `forgotten` is null if submissions prevented it. */
export const forgetIdleSeries = (sweep: {
  term: string
  days: number
  afterId: string
  limit: number
}): Query<{ looked_at: number; last_id: string | null; idle: number; forgotten: number | null }> => ({
  name: 'forget-idle-series',
  text: `
    select looked_at, last_id, idle, forgotten
    from smartqueue.forget_series($1::bigint, $2::double precision, $3::bigint, $4::int)`,
  values: [sweep.term, sweep.days, sweep.afterId, sweep.limit],
})
