import type { JobState } from '../../../db/rules/job-states.ts'
import type { Priority } from '../../../db/rules/priority.ts'
import type { Leader, LogLine, Summary, Worker } from '../api/answers.ts'

export type JobEvent = {
  cursor: string
  type: string
  job: {
    id: string
    name: string
    type: string
    status: JobState
    priority: Priority
    tags: string[]
    attempts: number
  }
  at: string
  reason: string | null
}

export type Progress = { fraction: number | null; note: string | null }

/** What the stream sends. See docs/stream.md. */
export type Frame =
  | { type: 'hello'; cursor: string; credit: number; expires_at: string }
  | { type: 'events'; events: JobEvent[] }
  | { type: 'summary'; summary: Summary }
  | { type: 'workers'; workers: Worker[]; leader: Leader | null }
  | { type: 'logs'; job_id: string; lines: LogLine[]; cursor: string }
  | { type: 'progress'; job_id: string; progress: Progress | null }
  | { type: 'resync'; cursor: string; reason: string }
  /** Also where no event was for this connection, it is known up to here. */
  | { type: 'ping'; cursor: string }
