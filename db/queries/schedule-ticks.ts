/**
 * The leader's side of schedules. A tick fires once: it is a key of `schedule_ticks`, stored in the transaction that
 * submits its job. That transaction first locks the schedule by its version and next tick, so a second leader waits
 * and then finds nothing to do.
 */
import type { Query } from '../query.ts'
import type { CatchUp, ScheduledJob } from '../rules/scheduled-job.ts'

export const TICK_OUTCOMES = ['fired', 'refused', 'skipped'] as const

export type TickOutcome = (typeof TICK_OUTCOMES)[number]

export type DueSchedule = {
  org_id: string
  id: string
  cron: string
  timezone: string
  catch_up: CatchUp
  job: ScheduledJob
  next_at: string
  version: string
  /** By the clock of the database. */
  now: string
}

/** One whose tick is near has no job yet: that may be large. */
export type NearSchedule = Omit<DueSchedule, 'job'> & { job: ScheduledJob | null }

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

/** A schedule as it was found. */
export type FoundSchedule = Pick<DueSchedule, 'org_id' | 'id' | 'version' | 'next_at'>

const asFound = (term: string, { org_id, id, version, next_at }: FoundSchedule) =>
  [term, org_id, id, version, next_at] as const

/** Locks it for the rest of the transaction. No row: it is not as it was found, and this term may fire nothing for it. */
export const holdSchedule = (term: string, schedule: FoundSchedule): Query<{ id: string }> => ({
  name: 'hold-schedule',
  text: `
    select id
    from smartqueue.schedules
    where org_id = $2::uuid
      and id = $3::uuid
      and version = $4::bigint
      and next_at = $5::timestamptz
      and (select smartqueue.in_term($1::bigint))
    for update`,
  values: asFound(term, schedule),
})

export type NewTick = {
  tickAt: Date
  /** The job that is going to be submitted for it. */
  jobId: string | null
  outcome: TickOutcome
  reason: string | null
}

/** Answers those that were not stored before. */
export const storeTicks = (
  { org_id, id }: FoundSchedule,
  ticks: readonly NewTick[],
): Query<{ tick_at: string }> => ({
  name: 'store-ticks',
  text: `
    insert into smartqueue.schedule_ticks (schedule_id, tick_at, org_id, job_id, outcome, reason)
    select $2::uuid, t.tick_at, $1::uuid, t.job_id, t.outcome, t.reason
    from unnest($3::timestamptz[], $4::uuid[], $5::text[], $6::text[]) as t (tick_at, job_id, outcome, reason)
    on conflict do nothing
    returning tick_at`,
  values: [
    org_id,
    id,
    ticks.map(({ tickAt }) => tickAt.toISOString()),
    ticks.map(({ jobId }) => jobId),
    ticks.map(({ outcome }) => outcome),
    ticks.map(({ reason }) => reason),
  ],
})

export type RefusedTick = { tickAt: Date; reason: string }

/** Their jobs were not submitted after all. */
export const refuseTicks = (scheduleId: string, ticks: readonly RefusedTick[]): Query<never> => ({
  name: 'refuse-ticks',
  text: `
    update smartqueue.schedule_ticks t
    set outcome = 'refused', reason = r.reason, job_id = null
    from unnest($2::timestamptz[], $3::text[]) as r (tick_at, reason)
    where t.schedule_id = $1::uuid
      and t.tick_at = r.tick_at`,
  values: [scheduleId, ticks.map(({ tickAt }) => tickAt.toISOString()), ticks.map(({ reason }) => reason)],
})

/** On to the next tick, of a schedule that is held. */
export const advanceSchedule = (
  { org_id, id }: FoundSchedule,
  to: { nextAt: Date | null; lastTickAt: Date; skipped: number },
): Query<never> => ({
  name: 'advance-schedule',
  text: `
    update smartqueue.schedules
    set next_at = $3::timestamptz, last_tick_at = $4::timestamptz, skipped_ticks = skipped_ticks + $5::bigint
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [org_id, id, to.nextAt?.toISOString() ?? null, to.lastTickAt.toISOString(), to.skipped],
})

/** One that cannot be read here, say because its time zone is unknown: it is paused, and says why. */
export const suspendSchedule = (
  term: string,
  schedule: FoundSchedule,
  reason: string,
): Query<{ id: string }> => ({
  name: 'suspend-schedule',
  text: `
    with suspended as (
      update smartqueue.schedules
      set paused_at = now(), last_tick_at = next_at, next_at = null, version = version + 1, updated_at = now()
      where org_id = $2::uuid
        and id = $3::uuid
        and version = $4::bigint
        and next_at = $5::timestamptz
        and (select smartqueue.in_term($1::bigint))
      returning org_id, id, last_tick_at
    ),
    tick as (
      insert into smartqueue.schedule_ticks (schedule_id, tick_at, org_id, outcome, reason)
      select id, last_tick_at, org_id, 'refused', $6::text
      from suspended
      on conflict do nothing
    )
    select id
    from suspended`,
  values: [...asFound(term, schedule), reason],
})

/** The columns of a tick are null in the one row that a schedule without ticks answers; no row means no such schedule. */
export type TickRow = {
  tick_at: string | null
  outcome: TickOutcome
  job_id: string | null
  reason: string | null
  fired_at: string
}

/** Newest first. */
export const listTicks = (page: {
  orgId: string
  scheduleId: string
  before: string | null
  limit: number
}): Query<TickRow> => ({
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
