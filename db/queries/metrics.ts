import type { Query } from '../query.ts'
import type { ModelCardRow } from './model-card.ts'

export type JobTotals = Record<
  'submitted' | 'completed' | 'failed_attempts' | 'dead' | 'retried' | 'cancelled' | 'lost_leases',
  number
> & { runtimes: number[]; runtime_ms: number; waits: number[]; wait_ms: number }

export type EdgeTotal = { name: string; label: string; total: number }

/** What is known of the whole system. Null where nobody has led yet. */
export type MetricsRow = {
  totals: JobTotals | null
  edge: EdgeTotal[]
  queue: { depths: { class: string; status: string; jobs: number }[]; oldest_ready_seconds: number } | null
  in_flight: number
  expired_leases: number
  slow_jobs: number
  /** Sums over the queue: predicted work, and the organisations that wait for their share. */
  sums: { backlog_ms: number; waiting_orgs: number; shortfall_seconds: number }
  workers: Record<string, number>
  slots: number
  leader: { term: number; silent_seconds: number } | null
  learning: Pick<ModelCardRow, 'learned' | 'by_source' | 'accuracy'> & {
    version: number
    faults: Record<string, number>
  }
  forecast: { usable: boolean; evaluation: unknown } | null
}

/** All metrics except the scaling signal, from sums that others keep. Nothing in it belongs to an organisation. */
export const readMetrics = (): Query<MetricsRow> => ({
  name: 'read-metrics',
  text: `
    select
      (select to_jsonb(t) from smartqueue.job_totals t) as totals,
      (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from smartqueue.edge_totals e) as edge,
      (
        select jsonb_build_object(
          'depths', depths,
          'oldest_ready_seconds', greatest(0, coalesce(extract(epoch from taken_at - oldest_ready_at), 0))
        )
        from smartqueue.queue_gauges
      ) as queue,
      l.in_flight::double precision as in_flight, l.expired::double precision as expired_leases,
      l.slow::double precision as slow_jobs,
      (
        select jsonb_build_object(
          -- Null while somebody takes the very first.
          'backlog_ms', coalesce((select sum(ms) from unnest(q.lane_ms) ms), 0)
            + coalesce((select sum(ms) from unnest(q.running_ms) ms), 0),
          'waiting_orgs', coalesce(q.waiting_orgs, 0),
          'shortfall_seconds', coalesce(extract(epoch from q.taken_at - q.short_since), 0)
        )
        -- At leisure: Prometheus can wait.
        from smartqueue.queue_snapshot(true) q
      ) as sums,
      (
        select coalesce(jsonb_object_agg(status, workers), '{}')
        from (
          select case when smartqueue.is_silent(last_seen) then 'offline' else status end as status, count(*) as workers
          from smartqueue.workers
          group by 1
        ) by_status
      ) as workers,
      smartqueue.live_slots() as slots,
      (
        select jsonb_build_object('term', term, 'silent_seconds', extract(epoch from clock_timestamp() - last_seen))
        from smartqueue.scheduler_leader
      ) as leader,
      (
        select jsonb_build_object(
          'learned', learned, 'by_source', by_source, 'accuracy', accuracy,
          'version', coalesce((select max(version) from smartqueue.models where status = 'champion'), 0),
          'faults', (select coalesce(jsonb_object_agg(reason, faults), '{}') from smartqueue.prediction_faults)
        )
        from smartqueue.learning_state
      ) as learning,
      (
        select jsonb_build_object('usable', unusable_because is null, 'evaluation', evaluation)
        from smartqueue.load_forecasts
      ) as forecast
    from smartqueue.lease_gauges() l`,
  values: [],
})

/** Adds what an isolate of the functions has counted. In the order of the keys: others add to the same rows. */
export const addEdgeTotals = (totals: readonly EdgeTotal[]): Query<never> => ({
  name: 'add-edge-totals',
  text: `
    insert into smartqueue.edge_totals as t (name, label, total)
    select name, label, total
    from unnest($1::text[], $2::text[], $3::bigint[]) as n (name, label, total)
    order by name, label
    on conflict (name, label) do update
    set total = t.total + excluded.total`,
  values: [
    totals.map(({ name }) => name),
    totals.map(({ label }) => label),
    totals.map(({ total }) => total),
  ],
})
