import { z } from '@hono/zod-openapi'
import { timestamp } from '../http/openapi.ts'
import { filterFields } from '../jobs/filter.ts'
import { MAX_SWEEP } from '../jobs/sweep.ts'

export const deadLetters = z
  .object({
    fingerprint: z.string().openapi({ description: 'Names the group.' }),
    count: z.int(),
    code: z.string(),
    message: z.string().openapi({ description: 'Of the newest job.' }),
    types: z.array(z.string()).openapi({ description: 'Of the newest 200 jobs.' }),
    first_failed_at: timestamp,
    last_failed_at: timestamp,
    example_job_ids: z.array(z.uuid()).openapi({ description: 'The newest three.' }),
  })
  .openapi('DeadLetters')

type Selection = { fingerprint?: unknown; type?: unknown; name?: unknown; job_ids?: unknown; all?: unknown }

/** By ids, by error, type and name, or all: a mix of these would leave open which one counts. */
const isOneSelection = ({ fingerprint, type, name, job_ids, all }: Selection): boolean => {
  const byFilter = [fingerprint, type, name].some((value) => value !== undefined)
  return [byFilter, job_ids !== undefined, all !== undefined].filter(Boolean).length === 1
}

export const replayRequest = z
  .strictObject({
    fingerprint: filterFields.fingerprint,
    type: filterFields.type,
    name: filterFields.name,
    job_ids: z.array(z.uuid()).min(1).max(1000).optional(),
    all: z.literal(true).optional(),
    limit: z
      .int()
      .min(1)
      .max(MAX_SWEEP)
      .default(MAX_SWEEP)
      .openapi({ description: 'Of jobs in this request.' }),
  })
  .refine(isOneSelection, 'needs job_ids, or all, or one or more of fingerprint, type and name')
  .openapi('Replay')

export const replayed = z
  .object({
    replayed: z.int(),
    done: z.boolean().openapi({ description: 'False: there are more. Send the same request again.' }),
  })
  .openapi('Replayed')
