import type { Page, Query } from '../query.ts'
import type { CatchUp, ScheduledJob } from '../rules/scheduled-job.ts'
import type { TickOutcome } from './schedule-ticks.ts'

export type ScheduleRow = {
  id: string
  name: string
  cron: string
  timezone: string
  catch_up: CatchUp
  job: ScheduledJob
  paused_at: string | null
  next_at: string | null
  skipped_ticks: number
  version: string
  created_at: string
  updated_at: string
  /** Of the newest tick; all null if none has come yet. */
  tick_at: string | null
  outcome: TickOutcome | null
  job_id: string | null
  reason: string | null
  fired_at: string | null
}

/** Of an organisation. */
export const MAX_SCHEDULES = 1000

export type NewSchedule = {
  id: string
  orgId: string
  userId: string
  name: string
  cron: string
  timezone: string
  catchUp: CatchUp
  job: ScheduledJob
  paused: boolean
  /** Null if it is paused. */
  nextAt: string | null
}

/** No row: the organisation has too many. */
export const createSchedule = (schedule: NewSchedule): Query<ScheduleRow> => ({
  name: 'create-schedule',
  text: `
    with created as (
      insert into smartqueue.schedules (id, org_id, created_by, name, cron, timezone, catch_up, job, paused_at, next_at)
      select
        $1::uuid, $2::uuid, $3::uuid, $4::text, $5::text, $6::text, $7::text, $8::jsonb,
        case when $9::boolean then now() end, $10::timestamptz
      where (select count(*) from smartqueue.schedules where org_id = $2::uuid) < $11::int
      returning
        org_id, id, name, cron, timezone, catch_up, job, paused_at, next_at, skipped_ticks, version, created_at, updated_at
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, 'schedule.created', jsonb_build_object('schedule_id', id, 'name', name)
      from created
    )
    select
      s.id, s.name, s.cron, s.timezone, s.catch_up, s.job, s.paused_at, s.next_at,
      s.skipped_ticks::double precision as skipped_ticks, s.version::text as version, s.created_at, s.updated_at,
      t.tick_at, t.outcome, t.job_id, t.reason, t.fired_at
    from created s
    left join lateral smartqueue.newest_tick(s.id) t on true`,
  values: [
    schedule.id,
    schedule.orgId,
    schedule.userId,
    schedule.name,
    schedule.cron,
    schedule.timezone,
    schedule.catchUp,
    JSON.stringify(schedule.job),
    schedule.paused,
    schedule.nextAt,
    MAX_SCHEDULES,
  ],
})

/** Oldest first. */
export const listSchedules = (page: Page & { orgId: string }): Query<ScheduleRow> => ({
  name: 'list-schedules',
  text: `
    select
      s.id, s.name, s.cron, s.timezone, s.catch_up, s.job, s.paused_at, s.next_at,
      s.skipped_ticks::double precision as skipped_ticks, s.version::text as version, s.created_at, s.updated_at,
      t.tick_at, t.outcome, t.job_id, t.reason, t.fired_at
    from smartqueue.schedules s
    left join lateral smartqueue.newest_tick(s.id) t on true
    where s.org_id = $1::uuid
      and ($2::uuid is null or s.id > $2::uuid)
    order by s.id
    limit $3::int`,
  values: [page.orgId, page.after, page.limit],
})

export const getSchedule = (orgId: string, id: string): Query<ScheduleRow> => ({
  name: 'get-schedule',
  text: `
    select
      s.id, s.name, s.cron, s.timezone, s.catch_up, s.job, s.paused_at, s.next_at,
      s.skipped_ticks::double precision as skipped_ticks, s.version::text as version, s.created_at, s.updated_at,
      t.tick_at, t.outcome, t.job_id, t.reason, t.fired_at
    from smartqueue.schedules s
    left join lateral smartqueue.newest_tick(s.id) t on true
    where s.org_id = $1::uuid
      and s.id = $2::uuid`,
  values: [orgId, id],
})

/**
 * No row: it was changed since this version, or is gone. `replan` replaces the next tick; otherwise a due tick still
 * fires.
 */
export const changeSchedule = (change: {
  orgId: string
  id: string
  version: string
  name: string
  cron: string
  timezone: string
  catchUp: CatchUp
  job: ScheduledJob
  paused: boolean
  replan: { nextAt: string | null } | null
  /** What is changed, for the audit log. */
  fields: readonly string[]
}): Query<ScheduleRow> => ({
  name: 'change-schedule',
  text: `
    with changed as (
      update smartqueue.schedules
      set
        name = $4::text,
        cron = $5::text,
        timezone = $6::text,
        catch_up = $7::text,
        job = $8::jsonb,
        paused_at = case when $9::boolean then coalesce(paused_at, now()) end,
        next_at = case when $9::boolean then null when $10::boolean then $11::timestamptz else next_at end,
        version = version + 1,
        updated_at = now()
      where org_id = $1::uuid
        and id = $2::uuid
        and version = $3::bigint
      returning
        org_id, id, name, cron, timezone, catch_up, job, paused_at, next_at, skipped_ticks, version, created_at, updated_at
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, 'schedule.changed', jsonb_build_object('schedule_id', id, 'name', name, 'fields', $12::text[])
      from changed
    )
    select
      s.id, s.name, s.cron, s.timezone, s.catch_up, s.job, s.paused_at, s.next_at,
      s.skipped_ticks::double precision as skipped_ticks, s.version::text as version, s.created_at, s.updated_at,
      t.tick_at, t.outcome, t.job_id, t.reason, t.fired_at
    from changed s
    left join lateral smartqueue.newest_tick(s.id) t on true`,
  values: [
    change.orgId,
    change.id,
    change.version,
    change.name,
    change.cron,
    change.timezone,
    change.catchUp,
    JSON.stringify(change.job),
    change.paused,
    change.replan !== null,
    change.replan?.nextAt ?? null,
    change.fields,
  ],
})

/** With its ticks. Jobs that it has made stay. */
export const deleteSchedule = (orgId: string, id: string): Query<{ id: string }> => ({
  name: 'delete-schedule',
  text: `
    with deleted as (
      delete from smartqueue.schedules
      where org_id = $1::uuid
        and id = $2::uuid
      returning org_id, id, name
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, 'schedule.deleted', jsonb_build_object('schedule_id', id, 'name', name)
      from deleted
    )
    select id
    from deleted`,
  values: [orgId, id],
})

/** Somebody has run it by hand. */
export const auditScheduleRun = (orgId: string, id: string, jobId: string): Query<never> => ({
  name: 'audit-schedule-run',
  text: `
    insert into smartqueue.audit_log (org_id, action, target)
    select org_id, 'schedule.run', jsonb_build_object('schedule_id', id, 'name', name, 'job_id', $3::uuid)
    from smartqueue.schedules
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, id, jobId],
})
