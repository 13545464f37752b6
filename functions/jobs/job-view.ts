import type { z } from '@hono/zod-openapi'
import type { JobRow, JobSummaryRow } from '../../db/queries/jobs.ts'
import { priorityScore } from '../../db/rules/priority.ts'
import type { job, jobSummary } from './schemas.ts'

/** Rows as the API shows them. */
export const viewSummary = (row: JobSummaryRow): z.output<typeof jobSummary> => ({
  id: row.id,
  org_id: row.org_id,
  created_by: row.created_by,
  triggered_by: row.triggered_by,
  callback_url: row.callback_url,
  fairness_key: row.fairness_key,
  name: row.name,
  type: row.type,
  status: row.status,
  priority: row.priority,
  priority_score: round(priorityScore(row.rank), 4),
  prediction: {
    p50_ms: round(row.predicted_ms, 1),
    p90_ms: round(row.predicted_p90_ms, 1),
    source: row.prediction_source,
    model_version: row.model_version,
  },
  resources: { cpu_units: row.cpu_units, memory_mb: row.memory_mb },
  tags: row.tags,
  timeout_seconds: row.timeout_seconds,
  retry: {
    max_attempts: row.max_attempts,
    initial_delay_seconds: row.initial_delay_seconds,
    backoff_multiplier: row.backoff_multiplier,
  },
  run_at: row.run_at,
  deadline: row.deadline,
  deadline_at_risk: row.deadline_at_risk,
  slow: row.slow,
  on_parent_failure: row.on_parent_failure,
  attempts: row.attempts,
  worker_id: row.worker_id,
  progress: viewProgress(row.progress, row.progress_note),
  error: row.error,
  created_at: row.created_at,
  started_at: row.started_at,
  finished_at: row.finished_at,
})

export const viewJob = (row: JobRow, eta: z.output<typeof job>['eta']): z.output<typeof job> => ({
  ...viewSummary(row),
  eta,
  payload: row.payload,
  depends_on: row.depends_on,
  traceparent: row.traceparent,
  result: row.result ?? null,
})

/** A handler that has only kept a checkpoint has said nothing about its progress. */
export const viewProgress = (
  fraction: number | null,
  note: string | null,
): z.output<typeof jobSummary>['progress'] => (fraction === null && note === null ? null : { fraction, note })

export const round = (value: number, digits: number): number => Number(value.toFixed(digits))
