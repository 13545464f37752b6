import type { JobSummary } from '../../api/answers.ts'
import type { JobEvent } from '../../live/frames.ts'

/** The row after the event. One that a page has overtaken is older than the row, and changes nothing. */
export const changedBy = (row: JobSummary, { job, at }: JobEvent): JobSummary => {
  if (Date.parse(at) < Date.parse(row.finished_at ?? row.started_at ?? row.created_at)) return row
  const { status, attempts, priority, tags } = job
  const changed = { ...row, status, attempts, priority, tags }
  if (status === row.status) return attempts === row.attempts ? row : changed
  switch (status) {
    case 'running':
      return { ...changed, started_at: at, finished_at: null }
    case 'completed':
    case 'failed':
    case 'cancelled':
      return { ...changed, finished_at: at, slow: false, progress: null }
    default:
      return { ...changed, started_at: null, finished_at: null, slow: false, progress: null }
  }
}
