/**
 * The leader's side of schedules. A tick fires once: it is a key of `schedule_ticks`, stored in the transaction that
 * submits its job. That transaction first locks the schedule by its version and next tick, so a second leader waits
 * and then finds nothing to do.
 */
import type { NewestFirst, Query } from '../query.ts'
import type { ScheduleRow } from './schedules.ts'

export const TICK_OUTCOMES = ['fired', 'refused', 'skipped'] as const

export type TickOutcome = (typeof TICK_OUTCOMES)[number]

export type DueSchedule = Pick<ScheduleRow, 'id' | 'cron' | 'timezone' | 'catch_up' | 'job' | 'version'> & {
  org_id: string
  next_at: string
  /** By the clock of the database. */
  now: string
}

/** One whose tick is near has no job yet: that may be large. */
export type NearSchedule = Omit<DueSchedule, 'job'> & { job: DueSchedule['job'] | null }

/** Those whose tick has come, and those whose tick is near: the first to come first. */
export const findDueSchedules = (search: {
  term: string
  withinMs: number
  limit: number
}): Query<NearSchedule> => ({
  name: 'find-due-schedules',
  text: `
    select
      org_id, id, cron, timezone, catch_up, case when next_at <= now() then job end as job, next_at,
      version::text as version, now()
    from smartqueue.schedules
    where next_at <= now() + $2::double precision * interval '1 millisecond'
      and (select smartqueue.in_term($1::bigint))
    order by next_at
    limit $3::int`,
  values: [search.term, search.withinMs, search.limit],
})

/**
 * Locks it for the rest of the transaction, and answers which of the ticks that have come are stored already, or null.
 * No row: it is not as it was found, and this term may fire nothing for it.
 */
export const holdSchedule = (
  term: string,
  { org_id, id, version, next_at }: NearSchedule,
): Query<{ stored_tick: string | null }> => ({
  name: 'hold-schedule',
  text: `
    select t.tick_at as stored_tick
    from smartqueue.schedules s
    left join smartqueue.schedule_ticks t
      on t.schedule_id = s.id
      and t.tick_at >= s.next_at
    where s.org_id = $2::uuid
      and s.id = $3::uuid
      and s.version = $4::bigint
      and s.next_at = $5::timestamptz
      and (select smartqueue.in_term($1::bigint))
    for update of s`,
  values: [term, org_id, id, version, next_at],
})

export type NewTick = Pick<TickRow, 'job_id' | 'outcome' | 'reason'> & { tick_at: Date }

/** Stores the ticks of a schedule that is held, and moves it on to the next one or pauses it. */
export const recordTicks = (
  { org_id, id }: NearSchedule,
  ticks: readonly NewTick[],
  { next, skipped, suspend }: { next: Date | null; skipped: number; suspend: boolean },
): Query<never> => ({
  name: 'record-ticks',
  text: `
    with recorded as (
      insert into smartqueue.schedule_ticks (schedule_id, tick_at, org_id, job_id, outcome, reason)
      select $2::uuid, tick_at, $1::uuid, job_id, outcome, reason
      from jsonb_populate_recordset(null::smartqueue.schedule_ticks, $3::jsonb)
      on conflict do nothing
    )
    update smartqueue.schedules
    set
      next_at = $4::timestamptz,
      skipped_ticks = skipped_ticks + $5::bigint,
      paused_at = case when $6::boolean then now() end,
      version = version + $6::boolean::integer,
      updated_at = case when $6::boolean then now() else updated_at end
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [org_id, id, JSON.stringify(ticks), next?.toISOString() ?? null, skipped, suspend],
})

/** All null in the one row that a schedule without ticks answers; no row means no such schedule. */
export type TickRow = {
  tick_at: string | null
  outcome: TickOutcome
  job_id: string | null
  reason: string | null
  fired_at: string
}

/** Newest first. */
export const listTicks = (page: NewestFirst & { orgId: string; scheduleId: string }): Query<TickRow> => ({
  name: 'list-ticks',
  text: `
    select t.tick_at, t.outcome, t.job_id, t.reason, t.fired_at
    from smartqueue.schedules s
    left join lateral (
      select tick_at, outcome, job_id, reason, fired_at
      from smartqueue.schedule_ticks
      where schedule_id = s.id
        and ($3::timestamptz is null or tick_at < $3::timestamptz)
      order by tick_at desc
      limit $4::int
    ) t on true
    where s.org_id = $1::uuid
      and s.id = $2::uuid
    order by t.tick_at desc`,
  values: [page.orgId, page.scheduleId, page.before, page.limit],
})
