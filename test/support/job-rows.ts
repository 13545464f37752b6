import type { JobState } from '../../db/rules/job-states.ts'
import type { JobSummary, Page } from '../../functions/dashboard/api/answers.ts'
import type { JobEvent } from '../../functions/dashboard/live/frames.ts'

const MINUTE = Date.parse('2026-11-17T12:00:00Z')

export const idOf = (n: number): string => `01a1eb00-0000-7000-8000-${n.toString(16).padStart(12, '0')}`

export const rowOf = (n: number): JobSummary => ({
  id: idOf(n),
  org_id: idOf(0),
  created_by: null,
  triggered_by: null,
  callback_url: null,
  fairness_key: null,
  name: `job-${n}`,
  type: 'http',
  status: 'ready',
  priority: 'normal',
  priority_score: 0.5,
  prediction: { p50_ms: 1_000, p90_ms: 2_000, source: 'type', model_version: null },
  resources: { cpu_units: 1, memory_mb: 64 },
  tags: [],
  timeout_seconds: null,
  retry: { max_attempts: 3, initial_delay_seconds: 5, backoff_multiplier: 2 },
  run_at: null,
  deadline: null,
  deadline_at_risk: false,
  slow: false,
  on_parent_failure: 'fail',
  attempts: 0,
  worker_id: null,
  progress: null,
  error: null,
  created_at: new Date(MINUTE).toISOString(),
  started_at: null,
  finished_at: null,
})

/** The jobs from one number down to another. */
export const pageOf = (from: number, to: number, { last = false } = {}): Page<JobSummary> => ({
  items: Array.from({ length: from - to + 1 }, (_, n) => rowOf(from - n)),
  next_cursor: last ? null : `after ${to}`,
})

export const eventOf = (
  n: number,
  status: JobState,
  second = 1,
  other: Partial<JobEvent['job']> = {},
): JobEvent => {
  const { id, name, type, priority, tags } = rowOf(n)
  const at = new Date(MINUTE + second * 1_000).toISOString()
  const job = { id, name, type, priority, tags, status, attempts: 1, ...other }
  return { cursor: `1-${n}-${second}`, type: `job.${status}`, job, at, reason: null }
}
