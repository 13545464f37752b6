import type { Page, Query } from '../query.ts'
import type { CatchUp, ScheduledJob } from '../rules/scheduled-job.ts'
import type { TickRow } from './schedule-ticks.ts'

/** As people see it: `schedule_view`. */
export type ScheduleRow = NewestTick & {
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
}

/** All null if no tick has come yet. */
type NewestTick = { [Column in keyof TickRow]: TickRow[Column] | null }

type ScheduleFields = Pick<ScheduleRow, 'name' | 'cron' | 'timezone' | 'catch_up' | 'job'> & {
  paused: boolean
}

/** Of an organisation. */
export const MAX_SCHEDULES = 1000

/** `next_at` is null if it is paused. */
export type NewSchedule = ScheduleFields & { id: string; created_by: string; next_at: string | null }

/** No row: the organisation has too many. */
export const createSchedule = (orgId: string, schedule: NewSchedule): Query<ScheduleRow> => ({
  name: 'create-schedule',
  text: `
    with created as (
      insert into smartqueue.schedules as s (
        org_id, id, created_by, name, cron, timezone, catch_up, job, paused_at, next_at
      )
      select
        $1::uuid, n.id, n.created_by, n.name, n.cron, n.timezone, n.catch_up, n.job,
        case when $3::boolean then now() end, n.next_at
      from jsonb_populate_record(null::smartqueue.schedules, $2::jsonb) n
      where (select count(*) from smartqueue.schedules where org_id = $1::uuid) < $4::int
      returning s as schedule
    )
    select v.*
    from created
    cross join smartqueue.schedule_view(schedule) v
    cross join smartqueue.audit($1::uuid, 'schedule.created', smartqueue.schedule_target(schedule))`,
  values: [orgId, JSON.stringify(schedule), schedule.paused, MAX_SCHEDULES],
})

/** Oldest first. */
export const listSchedules = (page: Page & { orgId: string }): Query<ScheduleRow> => ({
  name: 'list-schedules',
  text: `
    select v.*
    from smartqueue.schedules s
    cross join smartqueue.schedule_view(s) v
    where s.org_id = $1::uuid
      and ($2::uuid is null or s.id > $2::uuid)
    order by s.id
    limit $3::int`,
  values: [page.orgId, page.after, page.limit],
})

export const getSchedule = (orgId: string, id: string): Query<ScheduleRow> => ({
  name: 'get-schedule',
  text: `
    select v.*
    from smartqueue.schedules s
    cross join smartqueue.schedule_view(s) v
    where s.org_id = $1::uuid
      and s.id = $2::uuid`,
  values: [orgId, id],
})

/** Without `next_at` a due tick still fires. */
export type ScheduleChange = ScheduleFields & { next_at?: string | null | undefined }

/** No row: it was changed since this version, or is gone. `fields` are those that differ, for the audit log. */
export const changeSchedule = (
  { orgId, id, version }: { orgId: string; id: string; version: string },
  change: ScheduleChange,
  fields: readonly string[],
): Query<ScheduleRow> => ({
  name: 'change-schedule',
  text: `
    with changed as (
      update smartqueue.schedules s
      set
        (name, cron, timezone, catch_up, job, next_at) = (
          select n.name, n.cron, n.timezone, n.catch_up, n.job, case when not $5::boolean then n.next_at end
          from jsonb_populate_record(s, $4::jsonb) n
        ),
        paused_at = case when $5::boolean then coalesce(paused_at, now()) end,
        version = version + 1,
        updated_at = now()
      where org_id = $1::uuid
        and id = $2::uuid
        and version = $3::bigint
      returning s as schedule
    )
    select v.*
    from changed
    cross join smartqueue.schedule_view(schedule) v
    cross join smartqueue.audit(
      $1::uuid, 'schedule.changed',
      smartqueue.schedule_target(schedule) || jsonb_build_object('fields', $6::text[])
    )`,
  values: [orgId, id, version, JSON.stringify(change), change.paused, fields],
})

/** With its ticks. Jobs that it has made stay. */
export const deleteSchedule = (orgId: string, id: string): Query<{ id: string }> => ({
  name: 'delete-schedule',
  text: `
    delete from smartqueue.schedules s
    where org_id = $1::uuid
      and id = $2::uuid
    returning id, smartqueue.audit($1::uuid, 'schedule.deleted', smartqueue.schedule_target(s)) as audited`,
  values: [orgId, id],
})

/** Somebody has run it by hand. */
export const auditScheduleRun = (orgId: string, id: string, jobId: string): Query<unknown> => ({
  name: 'audit-schedule-run',
  text: `
    select smartqueue.audit(
      org_id, 'schedule.run', smartqueue.schedule_target(s) || jsonb_build_object('job_id', $3::uuid)
    )
    from smartqueue.schedules s
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, id, jobId],
})
