import { z } from '@hono/zod-openapi'
import type { JobFilter } from '../../db/queue/find-jobs.ts'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { PRIORITIES } from '../../db/rules/priority.ts'
import { time } from '../http/openapi.ts'

const text = (max: number) => z.string().min(1).max(max)

/** Which jobs are meant. All fields that are given must hold. */
export const filterFields = {
  status: z.enum(JOB_STATES).optional(),
  type: text(64).optional(),
  name: text(200).optional(),
  tag: text(64).optional().openapi({ description: 'Jobs that have this tag.' }),
  text: text(200).optional().openapi({
    description:
      'Jobs with this text in their name, in upper or lower case, or with this tag, or with this id.',
  }),
  priority: z.enum(PRIORITIES).optional(),
  created_by: z.uuid().optional().openapi({ description: 'The id of a user.' }),
  created_after: time.optional().openapi({ description: 'Created at this time or later.' }),
  created_before: time.optional().openapi({ description: 'Created before this time.' }),
  fingerprint: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional()
    .openapi({ description: 'Failed jobs with this error, see GET /dlq.' }),
}

export type Filter = { [Field in keyof typeof filterFields]?: z.output<(typeof filterFields)[Field]> }

/** Only failed jobs have an error to group by. */
export const fitsFingerprint = ({ status, fingerprint }: Filter): boolean =>
  fingerprint === undefined || status === undefined || status === 'failed'

export const FINGERPRINT_RULE = {
  message: 'Only failed jobs have a fingerprint',
  path: ['status'],
}

/** `states`: those that are meant unless the filter names one. */
export const toJobFilter = (
  { status, created_after, created_before, ...filter }: Filter,
  states?: JobFilter['statuses'],
): JobFilter => {
  const named = filter.fingerprint === undefined ? status : 'failed'
  return {
    ...filter,
    statuses: named ? [named] : states,
    created_after: created_after === undefined ? undefined : new Date(created_after),
    created_before: created_before === undefined ? undefined : new Date(created_before),
  }
}
