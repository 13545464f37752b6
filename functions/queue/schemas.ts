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
    used: part.openapi({ description: 'Its part of what the workers ran in the last minute.' }),
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
    paused: z.boolean().openapi({ description: 'The whole queue of the organisation.' }),
    paused_types: z.array(z.string()).openapi({ description: 'Types that are paused by themselves.' }),
    share: share.nullable().openapi({ description: 'Null right after the database was restarted.' }),
    organisations: z
      .array(orgQueue)
      .optional()
      .openapi({ description: 'For admins: organisations with jobs, the biggest use first, up to 100.' }),
  })
  .openapi('Queue')

export const pauseRequest = z
  .strictObject({
    type: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .openapi({ description: 'Only jobs of this type; without it, all.' }),
  })
  .openapi('Pause')
