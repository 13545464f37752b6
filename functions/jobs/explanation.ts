import { z } from '@hono/zod-openapi'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { REASON_CODES } from './reasons.ts'
import { eta, prediction } from './schemas.ts'

const reason = z
  .looseObject({
    code: z.enum(REASON_CODES),
    message: z.string().openapi({
      example: '12 jobs of its organisation are ahead of it, predicted to take 4.2 s on 8 slots.',
    }),
  })
  .openapi('Reason', { description: 'The numbers of the message stand beside it, by name.' })

export const explanation = z
  .object({
    job_id: z.uuid(),
    status: z.enum(JOB_STATES),
    summary: z.string().openapi({ description: 'The first reason, as a sentence.' }),
    reasons: z.array(reason).openapi({ description: 'What keeps it most comes first.' }),
    rank: z.int().nullable().openapi({
      description: 'Jobs of its organisation that are ahead of it. Null if it is not in the queue.',
    }),
    priority_score: z.number().min(0).max(1),
    ahead: z
      .object({
        jobs: z.int(),
        predicted_seconds: z.number().openapi({ description: 'Their work, on all slots together.' }),
        counted: z.boolean().openapi({
          description: 'False above 10,000, and if several fairness keys take turns: then it is an estimate.',
        }),
      })
      .nullable(),
    lane: z
      .object({
        number: z.int().openapi({ description: 'Lower lanes go first.' }),
        jobs: z.int(),
        predicted_seconds: z.number(),
        share: z.number().openapi({ description: "Part of the organisation's queued work." }),
      })
      .nullable()
      .openapi({
        description: 'Jobs of the organisation with about the same rank, when the queue was last summed up.',
      }),
    prediction,
    eta,
  })
  .openapi('Explanation')
