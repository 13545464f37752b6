import type { z } from '@hono/zod-openapi'
import type { JobRow, JobSummaryRow } from '../../db/queries/jobs.ts'
import type { job, jobSummary } from './schemas.ts'

/** Rows as the API shows them. */
export const viewSummary = (row: JobSummaryRow): z.output<typeof jobSummary> => ({
  id: row.id,
  org_id: row.org_id,
  created_by: row.created_by,
  name: row.name,
  type: row.type,
  status: row.status,
  priority: row.priority,
  tags: row.tags,
  timeout_seconds: row.timeout_seconds,
  retry: {
    max_attempts: row.max_attempts,
    initial_delay_seconds: row.initial_delay_seconds,
    backoff_multiplier: row.backoff_multiplier,
  },
  run_at: row.run_at?.toISOString() ?? null,
  attempts: row.attempts,
  worker_id: row.worker_id,
  error: row.error,
  created_at: row.created_at.toISOString(),
  started_at: row.started_at?.toISOString() ?? null,
  finished_at: row.finished_at?.toISOString() ?? null,
})

export const viewJob = (row: JobRow): z.output<typeof job> => ({
  ...viewSummary(row),
  payload: row.payload,
  result: row.result ?? null,
})
