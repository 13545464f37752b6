import { z } from '@hono/zod-openapi'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { LOG_LEVELS } from '../../db/rules/log-levels.ts'
import { PRIORITIES } from '../../db/rules/priority.ts'
import { DEFAULT_RETRY } from '../../db/rules/retry.ts'
import { timestamp } from '../http/openapi.ts'

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isStorableTime = (text: string): boolean => {
  const year = new Date(text).getUTCFullYear()
  return year >= 1970 && year <= 9999
}

/** Any JSON object, passed on as it came: z.record would copy it key by key. */
const payload = z
  .custom<Record<string, unknown>>(isObject, 'Must be a JSON object')
  .openapi({ type: 'object', example: { url: 'https://example.com/' } })

const type = z.string().min(1).max(64).openapi({ example: 'http' })
const name = z.string().min(1).max(200).openapi({ example: 'nightly-report' })
const tags = z.array(z.string().min(1).max(64)).max(20)
const timeoutSeconds = z.int().min(1).max(604_800)
const priority = z.enum(PRIORITIES)

const retry = z.strictObject({
  max_attempts: z.int().min(1).max(100).default(DEFAULT_RETRY.maxAttempts),
  initial_delay_seconds: z.number().min(0).max(3600).default(DEFAULT_RETRY.initialDelaySeconds),
  backoff_multiplier: z.number().min(1).max(10).default(DEFAULT_RETRY.backoffMultiplier),
})

export const newJob = z
  .strictObject({
    name: name.openapi({ description: 'Jobs of one type and name are runs of the same thing.' }),
    type: type.openapi({ description: 'Which handler runs it.' }),
    payload: payload.openapi({ description: "The handler's input; its schema is the handler's." }),
    priority: priority.default('normal'),
    tags: tags.default([]),
    timeout_seconds: timeoutSeconds.optional().openapi({ description: 'Ends an attempt that runs longer.' }),
    retry: retry
      .prefault({})
      .openapi({ description: 'Exponential backoff with full jitter, at most an hour.' }),
    run_at: z.iso
      .datetime({ offset: true })
      .refine(isStorableTime, 'must be between the years 1970 and 9999 in UTC')
      .optional()
      .openapi({ description: 'Not before this time.', example: '2026-11-16T18:00:00Z' }),
  })
  .openapi('NewJob')

const summaryFields = {
  id: z.uuid(),
  org_id: z.uuid(),
  created_by: z.uuid().nullable(),
  name: z.string(),
  type: z.string(),
  status: z.enum(JOB_STATES),
  priority,
  tags: z.array(z.string()),
  timeout_seconds: z.int().nullable(),
  retry: z.object({
    max_attempts: z.int(),
    initial_delay_seconds: z.number(),
    backoff_multiplier: z.number(),
  }),
  run_at: timestamp.nullable(),
  attempts: z.int().openapi({ description: 'Tries so far, a running one included.' }),
  worker_id: z.string().nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  created_at: timestamp,
  started_at: timestamp
    .nullable()
    .openapi({ description: 'Start of the attempt that runs, or of the last one once the job is finished.' }),
  finished_at: timestamp.nullable(),
}

export const jobSummary = z.object(summaryFields).openapi('JobSummary')

export const job = z
  .object({
    ...summaryFields,
    payload: z.record(z.string(), z.unknown()),
    result: z.unknown().openapi({ description: 'What the handler returned.' }),
  })
  .openapi('Job')

export const logLine = z
  .object({
    at: timestamp,
    level: z.enum(LOG_LEVELS),
    message: z.string(),
    attempt: z.int(),
  })
  .openapi('LogLine')
