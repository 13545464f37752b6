import { z } from '@hono/zod-openapi'
import { ATTEMPT_OUTCOMES } from '../../db/queries/attempts.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { LOG_LEVELS } from '../../db/rules/log-levels.ts'
import { PRIORITIES } from '../../db/rules/priority.ts'
import { timestamp } from '../http/openapi.ts'

export const failure = z.object({ code: z.string(), message: z.string() })

export const prediction = z.object({
  p50_ms: z.number().openapi({ description: 'Half of such attempts take no longer.' }),
  p90_ms: z.number().openapi({ description: 'Nine of ten such attempts take no longer.' }),
  source: z.enum(['lstm', 'series', 'type', 'default']).openapi({
    description:
      'What it was learned from: a model, runs of the same name, runs of the type, or nothing yet.',
  }),
  model_version: z.int().nullable(),
})

export const eta = z
  .object({
    start_at: timestamp.openapi({
      description:
        'When it will probably start: after the jobs ahead of it, on the workers that are alive. Of a running job: when it did.',
    }),
    finish_p50_at: timestamp.openapi({ description: 'As likely before as after.' }),
    finish_p90_at: timestamp.openapi({ description: 'In nine of ten cases it will have ended by then.' }),
  })
  .nullable()
  .openapi({
    description:
      'Null once it has finished, while no live worker can run it, and while it waits for jobs that have no estimate themselves.',
  })

const triggeredBy = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('webhook'), source_id: z.uuid(), delivery_id: z.uuid() }),
  z.object({
    kind: z.literal('schedule'),
    schedule_id: z.uuid(),
    tick_at: timestamp.nullable().openapi({ description: 'Null: somebody has run it by hand.' }),
  }),
  z.object({ kind: z.literal('callback'), job_id: z.uuid(), event: z.string() }),
])

const summaryFields = {
  id: z.uuid(),
  org_id: z.uuid(),
  created_by: z.uuid().nullable(),
  triggered_by: triggeredBy.nullable().openapi({
    description: 'What has made the job, if nobody has submitted it over the API.',
  }),
  callback_url: z.string().nullable(),
  fairness_key: z.string().nullable(),
  name: z.string(),
  type: z.string(),
  status: z.enum(JOB_STATES),
  priority: z.enum(PRIORITIES),
  priority_score: z.number().min(0).max(1).openapi({
    description: 'How soon its turn comes, 1 being the soonest: from its priority and its prediction.',
  }),
  prediction: prediction.openapi({ description: 'The runtime of an attempt, as predicted at submission.' }),
  resources: z.object({ cpu_units: z.number(), memory_mb: z.int() }),
  tags: z.array(z.string()),
  timeout_seconds: z.int().nullable(),
  retry: z.object({
    max_attempts: z.int(),
    initial_delay_seconds: z.number(),
    backoff_multiplier: z.number(),
  }),
  run_at: timestamp.nullable(),
  deadline: timestamp.nullable(),
  deadline_at_risk: z.boolean().openapi({
    description: 'Started now, it would probably end after its deadline. Of a finished job: it did.',
  }),
  slow: z.boolean().openapi({
    description:
      'The running attempt takes longer than all but one in a hundred of its kind, and than a second.',
  }),
  on_parent_failure: z.enum(['fail', 'wait']),
  attempts: z.int().openapi({ description: 'Tries so far, a running one included.' }),
  worker_id: z.string().nullable(),
  progress: z
    .object({ fraction: z.number().min(0).max(1).nullable(), note: z.string().nullable() })
    .nullable()
    .openapi({ description: 'What the handler says about how far it is.' }),
  error: failure.nullable(),
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
    eta,
    payload: z.record(z.string(), z.unknown()),
    depends_on: z.array(z.uuid()),
    traceparent: z.string().nullable().openapi({
      description:
        'The span in which it was submitted, as W3C Trace Context writes it: its execution goes on from there.',
      example: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    }),
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

export const attempt = z
  .object({
    attempt: z.int(),
    outcome: z.enum(ATTEMPT_OUTCOMES).openapi({
      description:
        '`lost`: its worker stopped responding; this counts only if the worker held no other job. `snoozed`: the handler asked to run later. `given_back`: its worker shut down before the job finished. The last two do not count.',
    }),
    error: failure.nullable(),
    worker_id: z.string(),
    started_at: timestamp,
    finished_at: timestamp.nullable(),
    runtime_ms: z.int().nullable(),
  })
  .openapi('Attempt')

export const sweep = z
  .object({
    matched: z.int().openapi({ description: 'Jobs that fit the filter and were looked at.' }),
    changed: z
      .int()
      .openapi({ description: 'Those of them that were changed; others had moved on meanwhile.' }),
    done: z.boolean().openapi({ description: 'False: there are more. Send the same request again.' }),
  })
  .openapi('Sweep')
