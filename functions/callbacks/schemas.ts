import { z } from '@hono/zod-openapi'
import { CALLBACK_EVENTS, TEST_EVENT } from '../../db/rules/callbacks.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { timestamp } from '../http/openapi.ts'
import { callbackUrl } from '../jobs/new-job.ts'
import { failure } from '../jobs/schemas.ts'

const event = z.enum(CALLBACK_EVENTS)

const url = callbackUrl.openapi({ example: 'https://example.com/hooks/smartqueue' })

const events = z
  .array(event)
  .min(1)
  .max(20)
  .transform((all) => [...new Set(all)])
  .openapi({ type: 'array', items: { type: 'string', enum: [...CALLBACK_EVENTS] } })

export const newEndpoint = z
  .strictObject({ url, events: events.default([...CALLBACK_EVENTS]) })
  .openapi('NewCallbackEndpoint')

export const endpointChange = z
  .strictObject({
    url: url.optional(),
    events: events.optional(),
    disabled: z.boolean().optional().openapi({ description: 'False enables it again.' }),
  })
  .refine((change) => Object.keys(change).length > 0, 'needs at least one field')
  .openapi('CallbackEndpointChange', { description: 'What is not named stays.' })

export const endpoint = z
  .object({
    id: z.uuid(),
    url: z.string(),
    events: z.array(event).openapi({
      description:
        'Of all jobs of the organisation. None: it is the `callback_url` of some jobs, and is kept because it is disabled.',
    }),
    disabled_at: timestamp.nullable(),
    disabled_reason: z
      .string()
      .nullable()
      .openapi({ description: 'Who answers 410 Gone is told no more.', example: 'answered 410 Gone' }),
    created_by: z.uuid().nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi('CallbackEndpoint')

export const sentTest = z
  .object({ job_id: z.uuid().openapi({ description: 'GET /jobs/{id} tells what became of it.' }) })
  .openapi('SentTest', { description: `An event of the type \`${TEST_EVENT}\` is on its way.` })

const secretFields = {
  created_at: timestamp,
  previous_expires_at: timestamp
    .nullable()
    .openapi({ description: 'Until then the secret before signs, too. Null: it does not.' }),
}

export const secret = z
  .object({ hint: z.string().openapi({ description: 'Its last four characters.' }), ...secretFields })
  .openapi('CallbackSecret')

export const rotation = z
  .strictObject({
    keep_previous_seconds: z.int().min(0).max(2_592_000).default(86_400).openapi({
      description:
        'How long the secret before signs beside the new one, so that receivers can be changed over.',
    }),
  })
  .openapi('CallbackSecretRotation')

export const rotatedSecret = z
  .object({
    secret: z.string().openapi({
      description: 'What receivers verify with. Shown only this once.',
      example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD2z9ySCeg5+0=',
    }),
    ...secretFields,
  })
  .openapi('RotatedCallbackSecret')

export const jobCallback = z
  .object({
    id: z.uuid().openapi({ description: 'Of the job that tells. Receivers see it as `webhook-id`.' }),
    event,
    host: z.string().openapi({ description: 'Where it goes to, without what may be secret of the URL.' }),
    status: z.enum(JOB_STATES),
    attempts: z.int(),
    error: failure.nullable(),
    created_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .openapi('JobCallback')
