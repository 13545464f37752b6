import { isFinished } from '../../../../db/rules/job-states.ts'
import type { JobSummary } from '../../api/answers.ts'
import type { JobEvent } from '../../live/frames.ts'

/** The row after the event. One that a page has overtaken is older than the row, and changes nothing. */
export const changedBy = (row: JobSummary, { job, at }: JobEvent): JobSummary => {
  // Times of the API are all written alike, and so in order as texts.
  if (at < (row.finished_at ?? row.started_at ?? row.created_at)) return row
  const { status, attempts, priority, tags } = job
  if (status === row.status && attempts === row.attempts) return row
  return { ...row, status, attempts, priority, tags, ...timesAfter(row, status, at) }
}

type Times = Pick<JobSummary, 'started_at' | 'finished_at' | 'slow' | 'progress'>

const timesAfter = (row: JobSummary, status: JobSummary['status'], at: string): Times => {
  const { started_at, slow, progress } = row
  if (status === row.status) return { started_at, finished_at: row.finished_at, slow, progress }
  const none = { finished_at: null, slow: false, progress: null }
  if (status === 'running') return { ...none, started_at: at }
  return isFinished(status) ? { ...none, started_at, finished_at: at } : { ...none, started_at: null }
}
