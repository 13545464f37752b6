import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { DueSchedule, RefusedTick } from '../../db/queries/schedule-ticks.ts'
import { type NewJob, readSubmitted, type SubmittedJob, submitJobs } from '../../db/queries/submission.ts'
import type { Run } from '../../db/query.ts'
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

export type SubmittedTicks = { submitted: SubmittedJob[]; refused: RefusedTick[] }

/** Each for itself: for those that a quota refuses the others go again. */
export const submitTicks = async (
  run: Run,
  orgId: string,
  ticks: readonly TickJob[],
): Promise<SubmittedTicks> => {
  const refused: RefusedTick[] = []
  let open = [...ticks]
  while (open.length > 0) {
    const submissions = open.map(({ job }) => ({ orgId, userId: null, jobs: [job] }))
    const rows = readSubmitted(submissions, await run(submitJobs(submissions)))
    const reasons = new Map<number, string>()
    for (const row of rows) {
      if (row.id === null && row.refusal === 'quota')
        reasons.set(row.submission - 1, quotaInWords(row.detail))
    }
    const submitted = rows.filter((row) => row.id !== null)
    if (submitted.length === open.length) return { submitted, refused }
    if (reasons.size === 0) throw new Error('Jobs of a schedule were neither submitted nor refused')
    open.forEach(({ tickAt }, n) => {
      const reason = reasons.get(n)
      if (reason !== undefined) refused.push({ tickAt, reason })
    })
    open = open.filter((_, n) => !reasons.has(n))
  }
  return { submitted: [], refused }
}
