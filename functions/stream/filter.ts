import type { StreamEvent } from '../../db/queries/stream.ts'
import type { JobState } from '../../db/rules/job-states.ts'

/** Which events a subscriber wants. All that is given must hold. */
export type StreamFilter = {
  job_id?: string | undefined
  type?: string | undefined
  status?: JobState | undefined
  tag?: string | undefined
}

export const matches = ({ job_id, type, status, tag }: StreamFilter, event: StreamEvent): boolean =>
  (job_id === undefined || job_id === event.job_id) &&
  (type === undefined || type === event.type) &&
  (status === undefined || status === event.state) &&
  (tag === undefined || event.tags.includes(tag))
