import { z } from '@hono/zod-openapi'
import { TICK_OUTCOMES } from '../../db/queries/schedule-ticks.ts'
import { PRIORITIES } from '../../db/rules/priority.ts'
import { CATCH_UPS } from '../../db/rules/scheduled-job.ts'
import { timestamp } from '../http/openapi.ts'
import { newJob } from '../jobs/new-job.ts'

const { type, payload, priority, resources, tags, timeout_seconds, retry, callback_url, fairness_key } =
  newJob.shape

/** What a job of its own may have, and the job of a schedule may not. */
const OUT_OF_PLACE = new Map([
  ['run_at', 'is not allowed in a schedule: its ticks determine when jobs run'],
  ['deadline', 'is not allowed in a schedule: send deadline_seconds, which counts from each tick'],
  ['depends_on', 'is not allowed in a schedule: each tick creates an independent job'],
  ['on_parent_failure', 'is not allowed in a schedule: its jobs have no dependencies'],
  ['idempotency_key', 'is not allowed in a schedule: each tick is submitted only once anyway'],
])

const jobFields = {
  name: newJob.shape.name
    .optional()
    .openapi({ description: 'What the jobs are called: without it, as the schedule is when they are set.' }),
  type,
  payload,
  priority,
  resources,
  tags,
  timeout_seconds,
  retry,
  callback_url,
  fairness_key,
  deadline_seconds: z.int().min(1).max(2_678_400).optional().openapi({
    description: 'When a job should be done, in seconds after its tick.',
    example: 3600,
  }),
}

/** Not a strict object: that could not say what is wrong with a field. */
const newScheduledJob = z
  .looseObject(jobFields)
  .superRefine((job, ctx) => {
    for (const key of Object.keys(job).filter((one) => !Object.hasOwn(jobFields, one))) {
      ctx.addIssue({ code: 'custom', path: [key], message: OUT_OF_PLACE.get(key) ?? 'is not a known field' })
    }
  })
  .openapi('NewScheduledJob', { additionalProperties: false })

export type ScheduledJobRequest = z.output<typeof newScheduledJob>

const cron = z
  .string()
  .max(200)
  .openapi({
    description:
      'Minute, hour, day of month, month, day of week; with the second before them if there are six. ' +
      '`*`, lists, ranges and steps; names of months and days; `L` (last), `#` (the nth), `W` (weekday nearest); ' +
      '@hourly, @daily, @weekly, @monthly, @yearly.',
    example: '30 6 * * MON-FRI',
  })

const timezone = z.string().max(64).openapi({
  description: 'IANA name of the time zone whose clocks count.',
  example: 'Europe/Berlin',
})

const fields = {
  name: z.string().min(1).max(200).openapi({ example: 'nightly report' }),
  cron,
  timezone,
  catch_up: z.enum(CATCH_UPS).openapi({
    description:
      'What becomes of ticks that were missed by more than a minute because no worker was there: none of them runs, the ' +
      'newest, or all, at most 100.',
  }),
  paused: z.boolean(),
}

export const newSchedule = z
  .strictObject({
    name: fields.name,
    cron,
    timezone: timezone.default('UTC'),
    catch_up: fields.catch_up.default('one'),
    paused: fields.paused.default(false),
    job: newScheduledJob,
  })
  .openapi('NewSchedule')

export const scheduleChange = z
  .strictObject({ ...fields, job: newScheduledJob })
  .partial()
  .openapi('ScheduleChange', { description: 'What is not named stays. `job` is replaced as a whole.' })

export const previewRequest = z
  .strictObject({ cron, timezone: timezone.default('UTC') })
  .openapi('SchedulePreview')

const nextRuns = z.array(timestamp).max(5)

export const preview = z
  .object({ next_runs: nextRuns.openapi({ description: 'The next five ticks.' }) })
  .openapi('NextRuns')

export const tick = z
  .object({
    tick_at: timestamp.openapi({ description: 'When it was to be.' }),
    outcome: z.enum(TICK_OUTCOMES).openapi({
      description:
        '`fired`: its job was submitted. `refused`: a quota, or `reason`, stood in the way. `skipped`: it was missed, ' +
        'and `catch_up` does not ask for it; the newest of those that were missed together.',
    }),
    job_id: z.uuid().nullable(),
    reason: z.string().nullable(),
    fired_at: timestamp.openapi({ description: 'When it was.' }),
  })
  .openapi('Tick')

const scheduledJob = z
  .object({
    name: z.string(),
    type: z.string(),
    payload: z.record(z.string(), z.unknown()),
    priority: z.enum(PRIORITIES),
    resources: z.object({ cpu_units: z.number(), memory_mb: z.int() }),
    retry: z.object({
      max_attempts: z.int(),
      initial_delay_seconds: z.number(),
      backoff_multiplier: z.number(),
    }),
    tags: z.array(z.string()),
    timeout_seconds: z.int().nullable(),
    callback_url: z.string().nullable(),
    fairness_key: z.string().nullable(),
    deadline_seconds: z.int().nullable(),
  })
  .openapi('ScheduledJob')

export const schedule = z
  .object({
    id: z.uuid(),
    name: z.string(),
    cron: z.string(),
    timezone: z.string(),
    catch_up: fields.catch_up,
    paused: z.boolean(),
    job: scheduledJob,
    next_run_at: timestamp.nullable().openapi({ description: 'Null while it is paused.' }),
    next_runs: nextRuns.openapi({ description: 'The next five ticks; none while it is paused.' }),
    last_tick: tick.nullable(),
    skipped_ticks: z.int().openapi({ description: 'Ticks that were missed and never run, in all.' }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi('Schedule')
