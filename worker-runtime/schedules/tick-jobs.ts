import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { DueSchedule, NewTick } from '../../db/queries/schedule-ticks.ts'
import type { Run } from '../../db/query.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { type Refusal, type SubmittedJob, submitJobs } from '../../db/queue/submit.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { quotaInWords } from '../../db/rules/quotas.ts'
import { deadlineOf } from '../../db/rules/scheduled-job.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'

export type TickJob = { tickAt: Date; job: NewJob }

export const toTickJob = (
  { id, job: scheduled }: DueSchedule,
  tickAt: Date,
  prediction: JobPrediction | null,
): TickJob => {
  const { resources, retry, deadline_seconds: _, ...job } = scheduled
  return {
    tickAt,
    job: {
      ...job,
      ...resources,
      ...retry,
      ...rankTerms(job.priority, job.timeout_seconds, prediction?.spreadLog),
      id: uuidV7(),
      run_at: null,
      deadline: deadlineOf(scheduled, tickAt),
      depends_on: [],
      on_parent_failure: 'fail',
      triggered_by: { kind: 'schedule', schedule_id: id, tick_at: tickAt.toISOString() },
      traceparent: null,
      prediction,
    },
  }
}

export type SubmittedTicks = {
  submitted: SubmittedJob[]
  ticks: NewTick[]
  refusedPredictions: Error[]
}

/** Each for itself. */
export const submitTicks = async (
  run: Run,
  orgId: string,
  jobs: readonly TickJob[],
): Promise<SubmittedTicks> => {
  if (jobs.length === 0) return { submitted: [], ticks: [], refusedPredictions: [] }
  const submitting = submitJobs(jobs.map(({ job }) => ({ orgId, userId: null, jobs: [job] })))
  const { rows, refusedPredictions } = submitting.read(await run(submitting))
  const rowOf = new Map(rows.map((row) => [row.submission, row]))
  const ticks = jobs.map(({ tickAt: tick_at }, n): NewTick => {
    const row = rowOf.get(n + 1)
    if (!row) throw new Error('A job of a schedule was neither submitted nor refused')
    return row.id === null
      ? { tick_at, job_id: null, outcome: 'refused', reason: reasonOf(row) }
      : { tick_at, job_id: row.id, outcome: 'fired', reason: null }
  })
  return { submitted: rows.filter((row) => row.id !== null), ticks, refusedPredictions }
}

const reasonOf = (refusal: Refusal): string => {
  if (refusal.refusal === 'quota') return quotaInWords(refusal.detail)
  // The message may name values, which stand in the logs only.
  return refusal.refusal === 'invalid'
    ? 'The database does not take the job.'
    : `The job was refused: ${refusal.refusal}.`
}
