/** The leader's duties. Statements with which it changes rows take its term, so a former leader changes nothing. */

import type { Query } from '../query.ts'

/** Which of the leader's duties have something to do. */
export type Outlook = {
  /** Waiting jobs that are due. */
  due: boolean
  /** Leases that expired. */
  expired: boolean
  /** Series whose estimate has moved. */
  moved: boolean
  /** Jobs that may need a reservation, or reservations that may no longer be needed. */
  big: boolean
  /** Jobs that must run alone, or workers that are still draining for them. */
  suspects: boolean
  /** Pauses and types that no worker handles, as text that changes whenever they do. Empty if there are none. */
  held_back: string
}

export const lookOut = (): Query<Outlook> => ({
  name: 'look-out',
  text: `
    select due, expired, moved, big, suspects, held_back
    from smartqueue.look_out()`,
  values: [],
})

/** Makes jobs ready whose run_at or backoff has passed. */
export const wakeDueJobs = (term: string, limit: number): Query<{ job_id: string; type: string }> => ({
  name: 'wake-due-jobs',
  text: `
    select job_id, type
    from smartqueue.wake_due_jobs(p_term => $1::bigint, p_limit => $2::int)`,
  values: [term, limit],
})

export type ReclaimedJob = {
  job_id: string
  /** Null if the job failed. */
  type: string | null
  worker_id: string
  state: 'ready' | 'failed'
  /** Whether the attempt counts. */
  counts: boolean
  /** Whether it runs alone from now on. */
  suspect: boolean
  /** Types of jobs that no longer have to run alone. */
  acquitted_types: string[]
}

/** The watchdog: takes jobs back from workers that stopped renewing their leases. */
export const reclaimExpiredLeases = (term: string, limit: number): Query<ReclaimedJob> => ({
  name: 'reclaim-expired-leases',
  text: `
    select job_id, type, worker_id, state, counts, suspect, acquitted_types
    from smartqueue.reclaim_expired_leases(p_term => $1::bigint, p_limit => $2::int)`,
  values: [term, limit],
})

/** Marks workers without recent heartbeats as offline, and deletes them a day later. */
export const markSilentWorkers = (term: string): Query<{ worker_id: string }> => ({
  name: 'mark-silent-workers',
  text: `
    select worker_id
    from smartqueue.mark_silent_workers(p_term => $1::bigint) as worker_id`,
  values: [term],
})

/** Where a sweep through the queue has arrived. */
export type SweepPlace = { flow: string; key: string }
export const SWEEP_START: SweepPlace = { flow: '-1', key: '0' }

/** Examines the next jobs: `limit` of them, after the place where the last step stopped. */
export type Sweep = { term: string; after: SweepPlace; limit: number }

/** How many jobs were examined, the place of the last one, and how many moved. */
export type SweepStep = {
  looked_at: number
  last_flow: string | null
  last_key: string | null
  moved: number
}

/** Undefined: the sweep has reached the end. */
export const nextPlace = (step: SweepStep | undefined, limit: number): SweepPlace | undefined =>
  step?.last_flow && step.last_key && step.looked_at === limit
    ? { flow: step.last_flow, key: step.last_key }
    : undefined

/**
 * Parks queued jobs that are held back, or unparks jobs that no longer are. Looking for jobs to park, it leaves out
 * those up to `sinceKey`. `types`: the types of the jobs that moved. `missed`: how many should have moved but were
 * locked. Jobs that become ready later have a higher key than `newest_key`.
 */
export const moveHeldBackJobs = (
  sweep: Sweep & { parked: boolean; sinceKey?: string },
): Query<SweepStep & { newest_key: string; types: string[] | null; missed: number }> => ({
  name: 'move-held-back-jobs',
  text: `
    select looked_at, last_flow, last_key, newest_key, types, moved, missed
    from smartqueue.move_held_back_jobs(
      p_term => $1::bigint, p_parked => $2::boolean, p_after_flow => $3::bigint, p_after_key => $4::bigint,
      p_since_key => $5::bigint, p_limit => $6::int
    )`,
  values: [sweep.term, sweep.parked, sweep.after.flow, sweep.after.key, sweep.sinceKey ?? '0', sweep.limit],
})

/** Series whose estimate has moved since their queued jobs were scored. */
export const takeMovedSeries = (term: string, limit: number): Query<{ id: string }> => ({
  name: 'take-moved-series',
  text: `
    select id
    from smartqueue.take_moved_series(p_term => $1::bigint, p_limit => $2::int) as id`,
  values: [term, limit],
})

/** Moves queued jobs of these series to the lane of their newest estimate. */
export const rescoreJobs = (sweep: Sweep & { seriesIds: readonly string[] }): Query<SweepStep> => ({
  name: 'rescore-jobs',
  text: `
    select looked_at, last_flow, last_key, moved
    from smartqueue.rescore_jobs(
      p_term => $1::bigint, p_series_ids => $2::bigint[], p_after_flow => $3::bigint, p_after_key => $4::bigint,
      p_limit => $5::int
    )`,
  values: [sweep.term, sweep.seriesIds, sweep.after.flow, sweep.after.key, sweep.limit],
})

/** Reserves capacity on a worker for a big job that smaller ones would overtake forever. */
export const reserveCapacity = (
  term: string,
  afterSeconds: number,
): Query<{ job_id: string; worker_id: string }> => ({
  name: 'reserve-capacity',
  text: `
    select job_id, worker_id
    from smartqueue.reserve_capacity(p_term => $1::bigint, p_after_seconds => $2::int)`,
  values: [term, afterSeconds],
})

/** Returns all workers that should run suspects alone and have not taken their turn yet. */
export const askToIsolate = (term: string): Query<{ worker_id: string; newly: boolean }> => ({
  name: 'ask-to-isolate',
  text: `
    select worker_id, newly
    from smartqueue.ask_to_isolate(p_term => $1::bigint)`,
  values: [term],
})

/** Called by a worker that has taken its turn or found no suspect. */
export const endIsolation = (workerId: string): Query<never> => ({
  name: 'end-isolation',
  text: `
    update smartqueue.workers
    set isolates = false
    where worker_id = $1::text`,
  values: [workerId],
})
