import { z } from '@hono/zod-openapi'
import { DELIVERY_STATUSES } from '../../db/queries/webhook-deliveries.ts'
import { WEBHOOK_SCHEMES } from '../../db/queries/webhook-sources.ts'
import { checkCondition } from '../../db/rules/conditions.ts'
import { isPlainObject } from '../../db/rules/json-values.ts'
import type { Fault } from '../../db/rules/paths.ts'
import { timestamp } from '../http/openapi.ts'
import { newJob } from '../jobs/new-job.ts'
import { prediction } from '../jobs/schemas.ts'
import { ROOTS } from './event.ts'
import { checkJobTemplate } from './job-template.ts'
import { ALGORITHMS, ENCODINGS } from './schemes.ts'
import { secretFault } from './secrets.ts'
import { hmacSettings } from './verification.ts'

const MAX_RULE_KIB = 64

/** Any JSON object that passes the check, as it came. */
const checked = (check: (value: unknown) => Fault[]) =>
  z.custom<Record<string, unknown>>(isPlainObject, 'must be a JSON object').superRefine((value, ctx) => {
    for (const { path, message } of check(value)) ctx.addIssue({ code: 'custom', path: [...path], message })
    if (JSON.stringify(value).length > MAX_RULE_KIB * 1024) {
      ctx.addIssue({ code: 'custom', message: `has more than ${MAX_RULE_KIB} KiB` })
    }
  })

const filter = checked((value) => checkCondition(value, ROOTS))
  .nullable()
  .openapi({
    type: ['object', 'null'],
    description:
      'Which events become jobs: comparisons over `$` (the body), `$headers` and `$event`, joined by `all`, `any` and ' +
      '`not`. Null: all of them. See docs/templates.md.',
    example: {
      all: [
        { path: '$event.type', eq: 'push' },
        { path: '$.ref', eq: 'refs/heads/main' },
      ],
    },
  })

const template = checked(checkJobTemplate).openapi({
  type: 'object',
  description:
    'The job that an event becomes: the fields of `POST /jobs`, in which strings may be lookups, `$.path`, with a default, ' +
    '`$.path ?? "none"`. `run_in_seconds` and `deadline_in_seconds` count from the receipt. A field that becomes null is left out.',
  example: {
    name: 'deploy {{ $.repository.full_name }}',
    type: 'http',
    payload: { url: 'https://deploy.example.com/', method: 'POST', body: { commit: '$.after' } },
    priority: 'high',
    deadline_in_seconds: 600,
  },
})

const name = z.string().trim().min(1).max(200).openapi({ example: 'Pushes to main' })
const secret = z.string().min(8).max(500)

export const newSource = z
  .strictObject({
    name,
    scheme: z.enum(WEBHOOK_SCHEMES).openapi({ description: 'How the sender signs.', example: 'github' }),
    secret: secret
      .optional()
      .openapi({ description: 'What the sender signs with. Without it one is made, and shown this once.' }),
    verification: hmacSettings.optional(),
    filter: filter.optional(),
    template,
    enabled: z.boolean().default(true),
  })
  .superRefine((source, ctx) => {
    const fault = source.secret === undefined ? undefined : secretFault(source.scheme, source.secret)
    if (fault) ctx.addIssue({ code: 'custom', path: ['secret'], message: fault })
    if (source.scheme !== 'hmac' && source.verification) {
      ctx.addIssue({ code: 'custom', path: ['verification'], message: ONLY_HMAC })
    }
  })
  .openapi('NewWebhookSource')

export const ONLY_HMAC = 'is for the scheme hmac: this scheme says itself how it is verified'

export const sourceChange = z
  .strictObject({
    name: name.optional(),
    verification: hmacSettings.optional(),
    filter: filter.optional(),
    template: template.optional(),
    enabled: z.boolean().optional(),
  })
  .refine((change) => Object.keys(change).length > 0, 'needs at least one field')
  .openapi('WebhookSourceChange', { description: 'What is not named stays. A filter of null is none.' })

const MAX_KEEP_SECONDS = 30 * 86_400

export const rotation = z
  .strictObject({
    secret: secret.optional().openapi({ description: 'Without it one is made, and shown this once.' }),
    keep_previous_seconds: z
      .int()
      .min(0)
      .max(MAX_KEEP_SECONDS)
      .default(86_400)
      .openapi({ description: 'For so long the secret so far is good, too. 0: it ends at once.' }),
  })
  .openapi('WebhookSecretRotation')

const orNull = z.string().nullable()

const sourceFields = {
  id: z.uuid(),
  name: z.string(),
  scheme: z.enum(WEBHOOK_SCHEMES),
  url: z.string().openapi({ description: 'Where the sender is to send.', example: 'https://…/hooks/0193…' }),
  enabled: z.boolean(),
  filter: z.record(z.string(), z.unknown()).nullable(),
  template: z.record(z.string(), z.unknown()),
  verification: z
    .object({
      signature_header: z.string(),
      prefix: z.string().openapi({ description: 'Before each signature.' }),
      algorithm: z.enum(ALGORITHMS),
      encoding: z.enum(ENCODINGS),
      content: z.string().openapi({ description: 'What is signed.', example: '{timestamp}.{body}' }),
      timestamp_header: orNull,
      tolerance_seconds: z.int().nullable(),
      id_header: orNull,
      id_path: orNull,
      type_header: orNull,
      type_path: orNull,
    })
    .openapi({
      description: 'How deliveries are verified, and where the id and type of the event are found.',
    }),
  secret_hint: z.string().openapi({ description: 'The end of the secret.', example: '…4f2a' }),
  previous_expires_at: timestamp
    .nullable()
    .openapi({ description: 'Until then the secret before is good, too.' }),
  created_by: z.uuid().nullable(),
  created_at: timestamp,
  updated_at: timestamp,
}

export const source = z.object(sourceFields).openapi('WebhookSource')

const warnings = z.array(z.object({ pointer: z.string(), detail: z.string() })).openapi({
  description:
    'What of the template will put deliveries into quarantine, as far as that can be said without an event.',
})

export const savedSource = z.object({ ...sourceFields, warnings }).openapi('SavedWebhookSource')

export const sourceWithSecret = z
  .object({ ...sourceFields, secret: z.string().openapi({ description: 'Shown only this once.' }) })
  .openapi('WebhookSourceWithSecret')

export const createdSource = z.object({ ...sourceWithSecret.shape, warnings }).openapi('CreatedWebhookSource')

const summaryFields = {
  id: z.uuid(),
  source_id: z.uuid(),
  received_at: timestamp,
  status: z.enum(DELIVERY_STATUSES),
  reason: orNull.openapi({ description: 'Why it was rejected or quarantined.' }),
  event_id: orNull.openapi({ description: "The sender's, by which a second delivery is known." }),
  event_type: orNull,
  job_id: z
    .uuid()
    .nullable()
    .openapi({ description: 'The job that it has made, or of which it is a duplicate.' }),
  replay_of: z.uuid().nullable().openapi({ description: 'The delivery that was run again.' }),
}

export const deliverySummary = z.object(summaryFields).openapi('WebhookDeliverySummary')

export const delivery = z
  .object({
    ...summaryFields,
    headers: z.record(z.string(), z.string()).openapi({ description: 'Without what looks secret.' }),
    body: z.unknown().openapi({
      description: 'Without what looks secret. Text, if it was no JSON; of a rejected one the beginning.',
    }),
  })
  .openapi('WebhookDelivery')

export const receipt = z
  .object({
    delivery_id: z.uuid(),
    status: z.enum(['accepted', 'duplicate', 'filtered', 'quarantined']),
    job_id: z.uuid().nullable().openapi({ description: 'The job. Of a duplicate: the first one.' }),
    reason: orNull.openapi({ description: 'Why it was quarantined.' }),
  })
  .openapi('WebhookReceipt')

export const replayRequest = z
  .strictObject({
    template: template.optional(),
    filter: filter.optional(),
    dry_run: z
      .boolean()
      .optional()
      .openapi({ description: 'Only show what would become of it. True if there is a draft.' }),
  })
  .refine(({ template, filter, dry_run }) => dry_run !== false || (!template && filter === undefined), {
    path: ['dry_run'],
    message: 'must be true with a draft: PATCH the source to put it to use, then replay',
  })
  .openapi('WebhookReplayRequest', {
    description: 'A `template` or `filter` is a draft, and only tried out.',
  })

export const replayResult = z
  .object({
    dry_run: z.boolean(),
    delivery_id: z.uuid().nullable().openapi({ description: 'Of the replay. Null: nothing was stored.' }),
    status: receipt.shape.status,
    job_id: z.uuid().nullable(),
    reason: orNull,
    errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).openapi({
      description: 'What of the job does not fit.',
    }),
    job: newJob.nullable().openapi({ description: 'Of a dry run: the job that it would make.' }),
    prediction: prediction
      .nullable()
      .openapi({ description: 'Of a dry run: how long it would probably take.' }),
  })
  .openapi('WebhookReplay')
