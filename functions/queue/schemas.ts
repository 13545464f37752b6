import { z } from '@hono/zod-openapi'

export const queue = z
  .object({
    paused: z.boolean().openapi({ description: 'The whole queue of the organisation.' }),
    paused_types: z.array(z.string()).openapi({ description: 'Types that are paused by themselves.' }),
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
