import { z } from '@hono/zod-openapi'
import { timestamp } from '../http/openapi.ts'

const described = (description: string) => z.number().openapi({ description })
const orNull = (description: string) => z.number().nullable().openapi({ description })
const count = z.number()

export const range = <Range extends string>(ranges: readonly [Range, ...Range[]]) =>
  z.enum(ranges).default(ranges[0])

/** A number for each state that is not the end. */
const depth = { pending: count, blocked: count, ready: count, running: count, retrying: count }

const period = z
  .object({
    submitted: count,
    completed: count,
    failed: count,
    cancelled: count,
    success_rate: orNull('completed / (completed + failed).'),
    wait_p50_ms: orNull('From when it could have started to its start.'),
    wait_p90_ms: z.number().nullable(),
    runtime_mean_ms: orNull('Of completed jobs.'),
  })
  .openapi('Period')

export const summary = z
  .object({
    at: timestamp,
    depth: z.object(depth).openapi({ description: 'Jobs, now.' }),
    oldest_ready_seconds: orNull('How long the oldest ready job has been so.'),
    last_hour: period,
    last_24h: period,
    throughput_per_minute: described('Jobs that ended in the last 60 seconds.'),
    submitted_per_minute: described('Jobs that came in the last 60 seconds.'),
    backlog: z.object({
      predicted_seconds: described('Predicted work that is ready, and what is left of running jobs.'),
      slots: described('Of all live workers.'),
      drain_seconds: orNull('To work that off with all slots. Null: no worker is alive.'),
    }),
    workers: z.object({
      online: count,
      draining: count,
      slots: count,
      running: count,
      wanted: count.nullable().openapi({
        description:
          'Workers that the predicted work of all organisations asks for. Null: nobody has looked lately.',
      }),
    }),
    forecast: z.object({
      in_seconds: count,
      depth: orNull('Ready and running jobs.'),
      work_seconds: orNull('Predicted work.'),
    }),
    paused: z.boolean(),
  })
  .openapi('Summary')

const series = { range: z.string(), bucket_seconds: z.int() }

export const throughput = z
  .object({
    ...series,
    items: z
      .array(
        z.object({
          at: timestamp,
          submitted: count,
          completed: count,
          failed: count,
          cancelled: count,
          runtime_mean_ms: z.number().nullable(),
          wait_mean_ms: z.number().nullable(),
        }),
      )
      .openapi({ description: 'Oldest first, without gaps; the last one is not over yet.' }),
  })
  .openapi('Throughput')

const share = z.number().nullable()

export const accuracy = z
  .object({
    ...series,
    points: z
      .array(
        z.object({
          at: timestamp,
          jobs: count,
          mean_abs_log_error: described('Of |ln(runtime / p50)|.'),
          baseline_mean_abs_log_error: orNull('By the running mean of the series.'),
          within_p90: described('The share of runtimes up to their p90.'),
          bias_log: described('Mean of ln(runtime / p50): above 0, jobs took longer than predicted.'),
        }),
      )
      .openapi({ description: 'Oldest first; those in which jobs completed.' }),
    overall: z.object({
      jobs: count,
      mean_abs_log_error: z.number().nullable(),
      median_ape: orNull('Of |p50 − runtime| / runtime.'),
      within_p50: share,
      within_p90: share,
    }),
    calibration: z.array(z.object({ predicted: z.number(), actual: share })),
    samples: z
      .array(
        z.object({
          job_id: z.uuid(),
          name: z.string(),
          type: z.string(),
          predicted_ms: count,
          predicted_p90_ms: count,
          actual_ms: count,
          at: timestamp,
          source: z.string(),
        }),
      )
      .openapi({ description: 'Completed jobs among the 2,000 that were submitted last, up to 500.' }),
  })
  .openapi('PredictionAccuracy')

export const queueDepth = z
  .object({
    ...series,
    items: z
      .array(
        z.object({
          at: timestamp,
          ...depth,
          predicted_seconds: described('Ready and running.'),
        }),
      )
      .openapi({ description: 'Averages, oldest first, without gaps.' }),
    forecast: z
      .array(
        z.object({
          at: timestamp,
          depth: described('Ready and running jobs.'),
          depth_p90: described('In nine of ten cases there will be no more.'),
          predicted_seconds: count,
        }),
      )
      .openapi({ description: 'Empty if no worker is alive.' }),
  })
  .openapi('QueueDepth')

const election = { term: z.int(), worker_id: z.string(), elected_at: timestamp }

export const leaderHistory = z
  .object({
    ...election,
    last_seen: timestamp,
    alive: z.boolean(),
    elections: z.array(z.object(election)).openapi({ description: 'Newest first, up to 20.' }),
  })
  .openapi('LeaderHistory')

export const schedulingGain = z
  .object({
    range: z.string(),
    jobs: described('That were replayed.'),
    mean_wait_ms: orNull('As it was.'),
    fifo_mean_wait_ms: orNull('First in, first out.'),
    gain: orNull('1 − mean_wait_ms / fifo_mean_wait_ms.'),
    max_wait_ms: z.number().nullable(),
    fifo_max_wait_ms: z.number().nullable(),
    points: z.array(z.object({ at: timestamp, jobs: count, mean_wait_ms: count, fifo_mean_wait_ms: count })),
    method: z.string(),
  })
  .openapi('SchedulingGain')
