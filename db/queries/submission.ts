import { INSERT_EVENTS } from '../event-groups.ts'
import type { Query } from '../query.ts'
import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from '../rules/estimate.ts'
import type { Priority, RankTerms } from '../rules/priority.ts'

export type NewJob = RankTerms & {
  id: string
  type: string
  name: string
  payload: Record<string, unknown>
  priority: Priority
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  cpu_units: number
  memory_mb: number
  run_at: string | null
  deadline: string | null
  /** Ids of jobs of the organisation, or of the same submission, which must have no cycle. */
  depends_on: string[]
  on_parent_failure: OnParentFailure
}

export type OnParentFailure = 'fail' | 'wait'

export type PredictionSource = 'lstm' | 'stream' | 'type' | 'default'

/** Jobs that are accepted together or not at all. */
export type Submission = { orgId: string; userId: string; jobs: readonly NewJob[] }

export type SubmittedJob = {
  /** Position of the submission in the statement, from 1. */
  submission: number
  id: string
  status: 'pending' | 'blocked' | 'ready'
  created_at: Date
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: PredictionSource
  model_version: number | null
  rank: number
  /** Even if it started now, its 90th percentile would pass the deadline. */
  deadline_at_risk: boolean
}

/** Why a submission was refused as a whole. */
export type RefusedSubmission = {
  submission: number
  id: null
  child_id: string
  parent_id: string
  refusal: 'unknown_parent' | 'failed_parent'
}

const STREAM_IDENTITY = `concat_ws(' ', org_id, type, name)`

/**
 * Commits many submissions in one statement, each for itself: all of its jobs or none. One without a row was not
 * made by a member of its organisation.
 *
 * The prediction is the stream's running estimate as of this statement, else the type's, else the default.
 */
export const submitJobs = (submissions: readonly Submission[]): Query<SubmittedJob | RefusedSubmission> => ({
  name: 'submit-jobs',
  text: `
    with member as materialized (
      select s.submission, m.org_id, m.user_id
      from unnest($1::uuid[], $2::uuid[]) with ordinality as s (org_id, user_id, submission)
      cross join lateral (
        select org_id, user_id
        from memberships
        where org_id = s.org_id
          and user_id = s.user_id
        offset 0
      ) m
    ),
    request as materialized (
      select m.org_id, m.user_id, r.*
      from rows from (
        jsonb_to_recordset($3::jsonb) as (
          submission integer, id uuid, type text, name text, payload jsonb, priority text, tags text[],
          timeout_seconds integer, max_attempts integer, initial_delay_seconds double precision,
          backoff_multiplier double precision, cpu_units real, memory_mb integer, run_at timestamptz,
          deadline timestamptz, depends_on uuid[], on_parent_failure text, rank_base double precision, rank_slope real
        )
      ) with ordinality as r (
        submission, id, type, name, payload, priority, tags, timeout_seconds, max_attempts, initial_delay_seconds,
        backoff_multiplier, cpu_units, memory_mb, run_at, deadline, depends_on, on_parent_failure, rank_base, rank_slope,
        position
      )
      join member m on m.submission = r.submission
    ),
    dependency as materialized (
      select distinct
        r.submission, r.org_id, r.id as child_id, r.on_parent_failure, d.parent_id,
        ((r.submission, d.parent_id) in (select submission, id from request)) is true as inside
      from request r
      cross join unnest(r.depends_on) as d (parent_id)
    ),
    parent as materialized (
      select o.org_id, p.job_id, p.state
      from (
        select org_id, array_agg(distinct parent_id) as parent_ids
        from dependency
        where not inside
        group by org_id
      ) o
      cross join lateral lock_parents(o.org_id, o.parent_ids) p
    ),
    refusal as materialized (
      select
        d.submission, d.child_id, d.parent_id,
        case when p.state is null then 'unknown_parent' else 'failed_parent' end as refusal
      from dependency d
      join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
      where not d.inside
        and (p.state is null or (p.state in ('failed', 'cancelled') and d.on_parent_failure = 'fail'))
    ),
    -- A left lateral join on each row, not a join with all streams of the request: it is one probe of the index,
    -- whatever the planner believes about the request.
    located as materialized (
      select r.*, s.stream_id, s.mean_log, s.deviation_log
      from request r
      left join lateral (
        select id as stream_id, mean_log, deviation_log
        from streams
        where org_id = r.org_id
          and type = r.type
          and name = r.name
        offset 0
      ) s on true
      where (r.submission in (select submission from refusal)) is not true
    ),
    -- On conflict an update and not nothing: only then is the row answered that a concurrent submission has just made.
    new_stream as (
      insert into streams as s (org_id, type, name)
      select distinct org_id, type, name
      from located
      where stream_id is null
      order by org_id, type, name
      on conflict on constraint streams_identity do update
      set name = excluded.name
      returning s.id, s.org_id, s.type, s.name
    ),
    new_streams as materialized (
      select jsonb_object_agg(${STREAM_IDENTITY}, id) as ids
      from new_stream
    ),
    obstacles as materialized (
      select jsonb_object_agg(child_id, remaining) as counts
      from (
        select d.child_id, count(*) as remaining
        from dependency d
        left join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
        where d.inside or p.state <> 'completed'
        group by d.child_id
      ) o
    ),
    predicted as materialized (
      select
        r.*,
        coalesce(r.mean_log, t.mean_log, $4::double precision) as log,
        coalesce(r.deviation_log, t.deviation_log, $5::double precision) as spread,
        case when r.mean_log is not null then 'stream' when t.type = r.type then 'type' else 'default' end as source,
        coalesce(((select counts from obstacles) ->> r.id::text)::integer, 0) as remaining
      from located r
      left join lateral (
        select type, mean_log, deviation_log
        from type_estimates
        where type = any (array[r.type, ''])
          and r.mean_log is null
        order by type desc
        limit 1
      ) t on true
    ),
    placed as materialized (
      select
        submission, position, org_id, id, user_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure, rank_base,
        rank_slope, remaining, source,
        coalesce(stream_id, ((select ids from new_streams) ->> ${STREAM_IDENTITY})::bigint) as stream_id,
        exp(log) as predicted_ms,
        exp(log + $6::double precision * spread) as predicted_p90_ms,
        rank_base + rank_slope * log as rank,
        deadline - exp(log + $6::double precision * spread) * interval '1 millisecond' as start_by,
        (case when remaining > 0 then 'blocked' when run_at > now() then 'pending' else 'ready' end)::job_state as status
      from predicted
    ),
    job as (
      insert into jobs (
        org_id, id, created_by, stream_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, prediction_source, rank_base, rank_slope
      )
      select
        org_id, id, user_id, stream_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, source, rank_base, rank_slope
      from placed
    ),
    edge as (
      insert into job_dependencies (parent_id, child_id, org_id)
      select parent_id, child_id, org_id
      from dependency
      where (submission in (select submission from refusal)) is not true
    ),
    blocked as (
      insert into blocked_jobs (job_id, org_id, remaining, on_parent_failure)
      select id, org_id, remaining, on_parent_failure
      from placed
      where status = 'blocked'
    ),
    pending as (
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
      select id, org_id, status, 0, run_at
      from placed
      where status = 'pending'
    ),
    ready as (
      insert into ready_jobs (job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
      select id, org_id, stream_id, type, lane_of(rank), 0, cpu_units, memory_mb, predicted_ms, start_by
      from placed
      where status = 'ready'
      order by position
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select
          org_id, id as job_id, status as state, 0 as attempt,
          case when start_by < now() then 'deadline_at_risk' end as reason, now() as at
        from placed
      ) transition
      group by org_id
    )
    select
      submission, id, status, now() as created_at, predicted_ms, predicted_p90_ms, source as prediction_source,
      null::integer as model_version, rank, coalesce(start_by < now(), false) as deadline_at_risk,
      null::uuid as child_id, null::uuid as parent_id, null as refusal
    from placed
    union all
    select submission, null, null, null, null, null, null, null, null, null, child_id, parent_id, refusal
    from refusal`,
  values: [
    submissions.map(({ orgId }) => orgId),
    submissions.map(({ userId }) => userId),
    JSON.stringify(submissions.flatMap(({ jobs }, i) => jobs.map((job) => ({ ...job, submission: i + 1 })))),
    DEFAULT_ESTIMATE.meanLog,
    DEFAULT_ESTIMATE.deviationLog,
    P90_DEVIATIONS,
  ],
})
