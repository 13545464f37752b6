import { z } from '@hono/zod-openapi'
import { PRIORITIES } from '../../db/rules/priority.ts'
import { DEFAULT_RESOURCES } from '../../db/rules/resources.ts'
import { time } from '../http/openapi.ts'

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Any JSON object, passed on as it came: z.record would copy it key by key. */
const payload = z
  .custom<Record<string, unknown>>(isObject, 'Must be a JSON object')
  .openapi({ type: 'object', example: { url: 'https://example.com/' } })

const retry = z.strictObject({
  max_attempts: z.int().min(1).max(100).default(3),
  initial_delay_seconds: z.number().min(0).max(3600).default(5),
  backoff_multiplier: z.number().min(1).max(10).default(2),
})

const resources = z.strictObject({
  cpu_units: z
    .number()
    .min(0)
    .max(1024)
    // As exact as the database keeps it, whatever the size.
    .refine((units) => units === Number(units.toFixed(3)), 'may have three decimals')
    .default(DEFAULT_RESOURCES.cpu_units)
    .openapi({ description: 'Fractions are fine, to three decimals.' }),
  memory_mb: z.int().min(0).max(1_048_576).default(DEFAULT_RESOURCES.memory_mb),
})

const MAX_PARENTS = 100
const jobId = z.uuid().toLowerCase()

export const idempotencyKey = z.string().min(1).max(255).openapi({ example: 'order-4711' })

/** As the http handler wants its URL. */
export const callbackUrl = z
  .url('must be a URL')
  .max(2048)
  .regex(/^https?:\/\/[^/?#\\@]+([/?#]|$)/i, 'must be an http: or https: URL without a user name')

const fields = {
  name: z.string().min(1).max(200).openapi({
    example: 'nightly-report',
    description: 'Jobs of one type and name are runs of the same thing.',
  }),
  type: z.string().min(1).max(64).openapi({ example: 'http', description: 'Which handler runs it.' }),
  payload: payload.openapi({ description: "The handler's input; its schema is the handler's." }),
  priority: z.enum(PRIORITIES).default('normal'),
  resources: resources
    .prefault({})
    .openapi({ description: 'What an attempt takes of its worker. Workers run only what fits.' }),
  tags: z.array(z.string().min(1).max(64)).max(20).default([]),
  timeout_seconds: z
    .int()
    .min(1)
    .max(604_800)
    .optional()
    .openapi({ description: 'Ends an attempt that runs longer.' }),
  retry: retry
    .prefault({})
    .openapi({ description: 'Exponential backoff with full jitter, at most an hour.' }),
  run_at: time.optional().openapi({ description: 'Not before this time.', example: '2026-11-16T18:00:00Z' }),
  deadline: time.optional().openapi({
    description: 'When it should be done. A job that must start now to make it goes first.',
    example: '2026-11-17T06:00:00Z',
  }),
  on_parent_failure: z.enum(['fail', 'wait']).default('fail').openapi({
    description:
      'If a job that it depends on fails or is cancelled: fail with it, or wait until that was retried.',
  }),
  callback_url: callbackUrl.optional().openapi({
    description:
      'Told when the job has completed, failed or was cancelled: a POST, signed as Standard Webhooks describes.',
    example: 'https://example.com/hooks/smartqueue',
  }),
  fairness_key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .openapi({
      description:
        'Which of your own tenants, such as a customer, the job is for. ' +
        "Tenants get equal shares of the time that workers spend on the organisation's jobs.",
      example: 'customer-42',
    }),
  idempotency_key: idempotencyKey.optional().openapi({
    description:
      'Within 24 hours a job with the same key and the same body is this job, and not submitted again.',
  }),
}

export const newJob = z
  .strictObject({
    ...fields,
    depends_on: z
      .array(jobId)
      .max(MAX_PARENTS)
      .default([])
      .openapi({ description: 'Ids of jobs that must have completed before it starts.' }),
  })
  .openapi('NewJob')

export const newBatchJob = z
  .strictObject({
    ref: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .openapi({ example: 'extract', description: 'Its name in this batch, for `depends_on` of others.' }),
    ...fields,
    depends_on: z
      .array(z.union([z.templateLiteral(['ref:', z.string().min(1).max(100)]), jobId]))
      .max(MAX_PARENTS)
      .default([])
      .openapi({
        type: 'array',
        items: { type: 'string' },
        example: ['ref:extract'],
        description: 'Ids of jobs, or `ref:` and the `ref` of a job of this batch.',
      }),
  })
  .openapi('NewBatchJob')

export const MAX_BATCH_JOBS = 1000

export const newBatch = z
  .strictObject({ jobs: z.array(newBatchJob).min(1).max(MAX_BATCH_JOBS) })
  .openapi('NewBatch')

export type JobRequest = z.output<typeof newBatchJob>
