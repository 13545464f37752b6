import { isoTime } from '../iso-time.ts'
import type { Query } from '../query.ts'
import type { JobRow, JobSummaryRow } from './jobs.ts'
import type { LiveWorker, QueueSums } from './queue-facts.ts'

/** Where a job stands in the queue of its organisation; nulls if it does not. */
export type QueuePlace = {
  lane: number | null
  ahead_jobs: number | null
  ahead_ms: number | null
  /** False: there are more ahead than that. */
  counted: boolean | null
  /** Its place within its lane then, from 0 to 1. */
  lane_position: number | null
  /** How many flows of the organisation have jobs. The jobs ahead are counted in the job's own flow. */
  flows: number | null
}

export type ParentFacts = QueuePlace &
  Pick<JobSummaryRow, 'id' | 'name' | 'status' | 'predicted_ms' | 'predicted_p90_ms'> & {
    /** Milliseconds that it has been running. */
    ran_ms: number | null
  }

/** Where an unfinished job is, and what its ETA depends on. */
export type JobPlace = QueuePlace & {
  now: string
  wake_at: string | null
  pauses: { type: string | null; paused_at: string }[]
  /** How many jobs it waits for, and the first of them. */
  open_parents: number
  parents: ParentFacts[]
}

/** Other reasons why it may wait. */
export type Obstacles = {
  org_name: string
  predicted_p99_ms: number | null
  reserved_by: string | null
  /** Its workers were lost twice in a row while it ran alongside other jobs. */
  runs_alone: boolean
  running_limit: number | null
  /** Counted only if there is a limit. */
  running_jobs: number
}

export type JobFacts = JobPlace & Obstacles & { workers: LiveWorker[]; queue: QueueSums | null }

/** A job, and where it stands. The workers and the queue are only in the first row, and only if requested. */
export type ReadJob = {
  job: JobRow
  place: JobPlace
  workers: LiveWorker[] | null
  queue: QueueSums | null
}

/**
 * Jobs that do not exist are omitted. Jobs ahead are counted up to `most`: with a million in the queue that takes 9 ms for ten
 * thousand.
 */
export const readJobs = (
  orgId: string,
  jobIds: readonly string[],
  options: { most: number; withQueue: boolean },
): Query<ReadJob> => ({
  name: 'read-jobs',
  text: `
    select job, place, workers, queue
    from smartqueue.read_jobs(
      p_org => $1::uuid, p_jobs => $2::uuid[], p_most => $3::integer, p_with_queue => $4::boolean, p_entry => $5::jsonb
    )`,
  values: [orgId, jobIds, options.most, options.withQueue, null],
  takesProof: true,
})

/** Times inside JSON are in the format of Postgres. */
export const withIsoTimes = ({ job, place, ...rest }: ReadJob): ReadJob => ({
  ...rest,
  job: {
    ...job,
    run_at: toIso(job.run_at),
    deadline: toIso(job.deadline),
    created_at: isoTime(job.created_at),
    started_at: toIso(job.started_at),
    finished_at: toIso(job.finished_at),
  },
  place: { ...place, wake_at: toIso(place.wake_at), now: isoTime(place.now) },
})

const toIso = (time: string | null): string | null => time && isoTime(time)

export const getObstacles = (orgId: string, jobId: string): Query<Obstacles> => ({
  name: 'get-obstacles',
  text: `
    select
      (select name from smartqueue.orgs where id = $1::uuid) as org_name, j.predicted_p99_ms,
      (select worker_id from smartqueue.reservations where job_id = j.id and org_id = $1::uuid) as reserved_by,
      coalesce(r.lane >= 15000, false) as runs_alone,
      q.running_jobs::integer as running_limit,
      (
        select count(*)::integer
        from smartqueue.held_jobs
        where org_id = $1::uuid
          and q.running_jobs is not null
      ) as running_jobs
    from smartqueue.jobs j
    left join smartqueue.ready_jobs r on r.job_id = j.id and r.org_id = j.org_id
    left join lateral (select running_jobs from smartqueue.quotas_of($1::uuid)) q on true
    where j.org_id = $1::uuid
      and j.id = $2::uuid`,
  values: [orgId, jobId],
})
