import { z } from '@hono/zod-openapi'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { REASON_CODES } from './reasons.ts'
import { eta, prediction } from './schemas.ts'

const reason = z
  .looseObject({
    code: z.enum(REASON_CODES),
    message: z.string().openapi({ example: '12 jobs are ahead of it, predicted to take 4.2 s on 8 slots.' }),
  })
  .openapi('Reason', { description: 'The numbers of the message stand beside it, by name.' })

export const explanation = z
  .object({
    job_id: z.uuid(),
    status: z.enum(JOB_STATES),
    summary: z.string().openapi({ description: 'The first reason, as a sentence.' }),
    reasons: z.array(reason).openapi({ description: 'What keeps it most comes first.' }),
    rank: z.int().nullable().openapi({
      description: 'Jobs of all organisations ahead of it. Null: it does not stand in the queue.',
    }),
    priority_score: z.number().min(0).max(1),
    ahead: z
      .object({
        jobs: z.int(),
        predicted_seconds: z.number().openapi({ description: 'Of work, on all slots together.' }),
        counted: z
          .boolean()
          .openapi({ description: 'False above 10,000: then it is an estimate from the sums of the queue.' }),
      })
      .nullable(),
    lane: z
      .object({
        number: z.int().openapi({ description: 'Lower lanes go first.' }),
        jobs: z.int(),
        predicted_seconds: z.number(),
        share: z.number().openapi({ description: 'Of the work that is queued.' }),
      })
      .nullable()
      .openapi({ description: 'Jobs of about the same rank, as of the last look at the whole queue.' }),
    prediction,
    eta,
  })
  .openapi('Explanation')
