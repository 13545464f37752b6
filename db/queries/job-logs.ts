import type { Page, Query } from '../query.ts'
import type { LogLevel } from '../rules/log-levels.ts'

type LogLine = { at: string; level: LogLevel; message: string }

export type NewLogLine = LogLine & { job_id: string; token: string }

/** Takes `NewLogLine[]` as JSON: lines of attempts that still hold their lease; those of a lost one vanish. */
export const appendJobLogs = (linesJson: string): Query<never> => ({
  name: 'append-job-logs',
  text: `
    insert into smartqueue.job_logs (org_id, job_id, attempt, at, level, message)
    select l.org_ids[n], line.job_id, l.attempts[n], line.at, line.level, line.message
    from rows from (
      jsonb_to_recordset($1::jsonb) as (job_id uuid, token bigint, at timestamptz, level text, message text)
    ) with ordinality as line (job_id, token, at, level, message, position)
    join smartqueue.leases l on l.token = line.token
    cross join lateral array_position(l.job_ids, line.job_id) as n
    where n is not null
    order by line.position`,
  values: [linesJson],
})

/** The columns of a line are null in the one row that a job without lines answers; no row means no such job. */
export type JobLogRow = LogLine & { id: string | null; attempt: number }

export const listJobLogs = (page: Page & { orgId: string; jobId: string }): Query<JobLogRow> => ({
  name: 'list-job-logs',
  text: `
    select line.id, line.attempt, line.at, line.level, line.message
    from smartqueue.jobs j
    left join lateral (
      select g.id, g.attempt, g.at, g.level, g.message
      from smartqueue.job_logs g
      where g.job_id = j.id
        and g.id > coalesce($3::bigint, 0)
      order by g.id
      limit $4::int
    ) line on true
    where j.org_id = $1::uuid
      and j.id = $2::uuid
    order by line.id`,
  values: [page.orgId, page.jobId, page.after, page.limit],
})

export type FollowedJob = {
  progress: number | null
  note: string | null
  /** The last line that is known now. */
  newest: string
  lines: (LogLine & { attempt: number })[]
}

/**
 * The lines of a job after a line, and its progress; without a line only the newest line. No row: no such job. Lines
 * can be read by number, unlike events: only the holder of the lease writes them, one after the other.
 */
export const followJob = (job: Page & { orgId: string; jobId: string }): Query<FollowedJob> => ({
  name: 'follow-job',
  text: `
    with line as materialized (
      select id, attempt, at, level, message
      from smartqueue.job_logs
      where job_id = $2::uuid
        and id > $3::bigint
      order by id
      limit $4::int
    )
    select
      p.progress, p.note,
      coalesce(
        (select id from line order by id desc limit 1),
        $3::bigint,
        (select id from smartqueue.job_logs where job_id = $2::uuid order by id desc limit 1),
        0
      )::text as newest,
      (
        select coalesce(
          json_agg(json_build_object('attempt', attempt, 'at', at, 'level', level, 'message', message) order by id),
          '[]'
        )
        from line
      ) as lines
    from smartqueue.jobs j
    left join smartqueue.job_progress p on p.job_id = j.id
    where j.org_id = $1::uuid
      and j.id = $2::uuid`,
  values: [job.orgId, job.jobId, job.after, job.limit],
})
