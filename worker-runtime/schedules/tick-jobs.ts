import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { DueSchedule, RefusedTick } from '../../db/queries/schedule-ticks.ts'
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
  refused: RefusedTick[]
  refusedPredictions: Error[]
}

/** Each for itself. */
export const submitTicks = async (
  run: Run,
  orgId: string,
  ticks: readonly TickJob[],
): Promise<SubmittedTicks> => {
  if (ticks.length === 0) return { submitted: [], refused: [], refusedPredictions: [] }
  const submitting = submitJobs(ticks.map(({ job }) => ({ orgId, userId: null, jobs: [job] })))
  const { rows, refusedPredictions } = submitting.read(await run(submitting))
  const refused = rows.flatMap((row) => {
    const tick = ticks[row.submission - 1]
    return row.id === null && tick ? [{ tickAt: tick.tickAt, reason: reasonOf(row) }] : []
  })
  const submitted = rows.filter((row) => row.id !== null)
  if (submitted.length + refused.length < ticks.length) {
    throw new Error('Jobs of a schedule were neither submitted nor refused')
  }
  return { submitted, refused, refusedPredictions }
}

const reasonOf = (refusal: Refusal): string => {
  if (refusal.refusal === 'quota') return quotaInWords(refusal.detail)
  // The message may name values, which stand in the logs only.
  return refusal.refusal === 'invalid'
    ? 'The database does not take the job.'
    : `The job was refused: ${refusal.refusal}.`
}
