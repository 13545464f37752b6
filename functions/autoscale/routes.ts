import { createRoute, z } from '@hono/zod-openapi'
import { viewAutoscale } from '../../db/queries/autoscale.ts'
import { jsonContent, problemResponses, problems, timestamp } from '../http/openapi.ts'
import { createRouter } from '../http/validation.ts'
import { forOperators } from '../metrics/access.ts'

export const autoscaleRoutes = () =>
  createRouter().openapi(autoscaleRoute, async (c) =>
    c.json(viewAutoscale(await c.get('services').autoscale.read()), 200),
  )

const seconds = (description: string) => z.number().openapi({ description })
const workers = (description: string) => z.int().openapi({ description })

const autoscale = z
  .object({
    desired: workers('max(⌈B/T⌉, ⌈R/T⌉, ⌈F/T⌉), within min_workers and max_workers.'),
    B: seconds('Predicted work that is there: queued, and left of what runs.'),
    R: seconds('Queued, and what comes while that is worked off: arriving a second × drain goal.'),
    F: seconds('What will come within the lead time: forecast, and announced by run_at and by schedules.'),
    T: seconds('Work that one worker gets done within the drain goal: slots × 0.8 × drain goal.'),
    needed: z.object({ B: z.number(), R: z.number(), F: z.number() }).openapi({
      description: 'B/T, R/T and F/T: workers that each asks for, for an autoscaler whose target is 1.',
    }),
    workers: workers('That are alive.'),
    min_workers: z.int(),
    max_workers: z.int(),
    forecast: z.object({
      p50_seconds: z.number().nullable(),
      p90_seconds: z.number().nullable(),
      unused_because: z
        .string()
        .nullable()
        .openapi({ description: 'Why there is no forecast. Then only what was announced counts.' }),
      scheduled_seconds: seconds('Of jobs with run_at, retries and ticks of schedules.'),
      lead_seconds: z.number(),
    }),
    drain_goal_seconds: z.number(),
    taken_at: timestamp,
    age_seconds: z.number(),
  })
  .openapi('Autoscale', {
    description: 'How many workers there should be, and why. All work is in predicted seconds.',
  })

const autoscaleRoute = createRoute({
  method: 'get',
  path: '/autoscale',
  tags: ['operations'],
  summary: 'How many workers there should be',
  description:
    'By a snapshot that the leader takes every five seconds. Without one of the last half minute the answer is 503: keep the ' +
    'number of workers as it is. Of the whole system; nothing in it tells of an organisation. Where `OPERATIONS_TOKEN` is ' +
    'bound, that is the bearer token.',
  middleware: forOperators(),
  responses: {
    200: jsonContent(autoscale, 'What to scale by'),
    ...problems('unauthenticated'),
    ...problemResponses('autoscale-unknown', 'database-unavailable'),
  },
})
