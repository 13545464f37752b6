import { z } from '@hono/zod-openapi'
import { timestamp } from '../http/openapi.ts'

const part = z.number().min(0).max(1)

export const share = z
  .object({
    weight: z.number().openapi({ description: 'Relative to the weights of other organisations.' }),
    share: part.openapi({
      description:
        "The organisation's part of the workers' time: its weight over the weights of all organisations that have " +
        'ready or running jobs. While it has none itself, the part that it would get.',
    }),
    used: part.openapi({ description: "Fraction of the workers' time that it used in the last minute." }),
    waiting_jobs: z.int().openapi({ description: 'Jobs that could start now.' }),
    waiting_seconds: z.number().openapi({ description: 'Their predicted runtime.' }),
    running_jobs: z.int(),
    short_since: timestamp.nullable().openapi({
      description:
        'Since when it has used less than half of its share although more work waits. Null if it gets its share.',
    }),
  })
  .openapi('Share')

export const orgQueue = share.extend({ id: z.uuid(), name: z.string() }).openapi('OrganisationShare')

export const queue = z
  .object({
    paused: z.boolean().openapi({ description: 'Whether the whole queue of the organisation is paused.' }),
    paused_types: z.array(z.string()).openapi({ description: 'Types that are paused individually.' }),
    share: share
      .nullable()
      .openapi({ description: 'Null until the first look after the database recovers from a crash.' }),
    organisations: z
      .array(orgQueue)
      .optional()
      .openapi({ description: 'For admins: organisations with jobs, highest usage first, up to 100.' }),
  })
  .openapi('Queue')

export const pauseRequest = z
  .strictObject({
    type: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .openapi({ description: 'Pause or resume only this type; all types if omitted.' }),
  })
  .openapi('Pause')
