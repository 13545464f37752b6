import { z } from '@hono/zod-openapi'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { timestamp } from '../http/openapi.ts'
import { idPosition, pageFields } from '../http/pagination.ts'
import { filterFields } from '../jobs/filter.ts'
import { jobSummary } from '../jobs/schemas.ts'
import { parseCursor } from './cursor.ts'
import { TOPIC_NAMES, type TopicName, type Wish } from './subscriber.ts'

export const ticket = z
  .object({
    ticket: z.string().openapi({ description: 'Good once, as the subprotocol `ticket.<ticket>`.' }),
    expires_at: timestamp,
  })
  .openapi('StreamTicket')

const NO_CURSOR = 'is no cursor of the stream: leave it out to begin now'

export const streamCursor = z
  .string()
  .transform((text, ctx) => {
    const place = parseCursor(text)
    if (place) return place
    ctx.addIssue({ code: 'custom', message: NO_CURSOR })
    return z.NEVER
  })
  .openapi({ type: 'string', example: '3f9c2a7be1d04586-7481-1204-3' })

const isTopic = (name: string): name is TopicName => TOPIC_NAMES.some((topic) => topic === name)

const topics = z
  .string()
  .transform((text) => [...new Set(text.split(','))])
  .refine((names) => names.every(isTopic), `must be some of ${TOPIC_NAMES.join(', ')}, separated by commas`)
  .transform((names) => names.filter(isTopic))
  .optional()
  .openapi({ type: 'string', example: 'events,workers' })

const LOG_START = '0'

export const streamQuery = z
  .strictObject({
    cursor: streamCursor.optional().openapi({
      type: 'string',
      description: 'Goes on after this event. Without it: from now.',
    }),
    job_id: z.uuid().toLowerCase().optional().openapi({ description: 'Only events of this job.' }),
    type: filterFields.type,
    status: z.enum(JOB_STATES).optional().openapi({ description: 'Only changes to this state.' }),
    tag: filterFields.tag,
    topics: topics.openapi({
      description:
        'Besides `events`, which is what there is without it: `summary` (as GET /analytics/summary), `workers` (as ' +
        'GET /jobs/workers), and `logs`, what the job of `job_id` writes and how far it is.',
    }),
    log_cursor: z
      .literal('start')
      .transform(() => LOG_START)
      .or(pageFields(idPosition).cursor)
      .optional()
      .openapi({
        type: 'string',
        description:
          'Where the log goes on: the `cursor` of a frame with lines, or `start`. Without it: from now.',
      }),
  })
  .refine(({ topics, job_id }) => !topics?.includes('logs') || job_id !== undefined, {
    message: 'is required with the topic logs',
    path: ['job_id'],
  })

export const toWish = (query: z.output<typeof streamQuery>): Wish => ({
  place: query.cursor ?? null,
  filter: { job_id: query.job_id, type: query.type, status: query.status, tag: query.tag },
  topics: query.topics ?? ['events'],
  logsAfter: query.log_cursor ?? null,
})

export const streamEvent = z
  .object({
    cursor: z.string(),
    type: z.string().openapi({ example: 'job.completed' }),
    job: jobSummary.pick({
      id: true,
      name: true,
      type: true,
      status: true,
      priority: true,
      tags: true,
      attempts: true,
    }),
    at: timestamp,
    reason: z.string().nullable(),
  })
  .openapi('StreamEvent', { description: 'A job has changed its state.' })
