import type { z } from '@hono/zod-openapi'
import { isoTime } from '../../db/iso-time.ts'
import type { GainPointRow, QueueDepthRow } from '../../db/queries/analytics.ts'
import type { PredictionAccuracyRow, PredictionSums } from '../../db/queries/analytics-accuracy.ts'
import type { LeaderRow } from '../../db/queries/registry.ts'
import { round } from '../jobs/job-view.ts'
import { depthsAhead } from './forecast.ts'
import { quantileOf } from './log-histogram.ts'
import type { accuracy, leaderHistory, queueDepth, schedulingGain } from './schemas.ts'
import { orNull, ratio } from './summary.ts'

type Accuracy = z.output<typeof accuracy>

export const viewAccuracy = (row: PredictionAccuracyRow): Omit<Accuracy, 'range' | 'bucket_seconds'> => {
  const total = (key: Exclude<keyof PredictionSums, 'at'>): number =>
    row.points.reduce((sum, point) => sum + point[key], 0)
  const jobs = total('jobs')
  const withinP50 = ratio(total('within_p50'), jobs)
  const withinP90 = ratio(total('within_p90'), jobs)
  const medianApe = quantileOf(row.apes, 0.5)
  return {
    points: row.points.map((point) => ({
      at: isoTime(point.at),
      jobs: point.jobs,
      mean_abs_log_error: round(point.abs_log_error / point.jobs, 4),
      baseline_mean_abs_log_error: round(point.baseline_abs_log_error / point.jobs, 4),
      within_p90: round(point.within_p90 / point.jobs, 4),
      bias_log: round(point.log_error / point.jobs, 4),
    })),
    overall: {
      jobs,
      mean_abs_log_error: ratio(total('abs_log_error'), jobs),
      median_ape: orNull(medianApe && medianApe / 1000, 4),
      within_p50: withinP50,
      within_p90: withinP90,
    },
    calibration: [
      { predicted: 0.5, actual: withinP50 },
      { predicted: 0.9, actual: withinP90 },
    ],
    samples: row.samples.map((one) => ({
      ...one,
      predicted_ms: round(one.predicted_ms, 1),
      predicted_p90_ms: round(one.predicted_p90_ms, 1),
      actual_ms: round(one.actual_ms, 1),
      at: isoTime(one.at),
    })),
  }
}

/** `every` so many minutes, for as many of them. */
export const viewQueueDepth = (
  row: QueueDepthRow,
  { every, minutes }: { every: number; minutes: number },
): Omit<z.output<typeof queueDepth>, 'range' | 'bucket_seconds'> => ({
  items: row.items.map((item) => ({ ...item, at: isoTime(item.at) })),
  forecast: depthsAhead(row, minutes)
    .filter((_, n) => (n + 1) % every === 0)
    .map(({ inMs, jobs, jobsP90, workMs }) => ({
      at: new Date(Date.parse(row.at) + inMs).toISOString(),
      depth: round(jobs, 1),
      depth_p90: round(jobsP90, 1),
      predicted_seconds: round(workMs / 1000, 1),
    })),
})

export const viewLeader = (row: LeaderRow): z.output<typeof leaderHistory> => ({
  worker_id: row.worker_id,
  term: Number(row.term),
  elected_at: row.elected_at,
  last_seen: row.last_seen,
  alive: row.alive,
  elections: row.elections.map((one) => ({ ...one, elected_at: isoTime(one.elected_at) })),
})

const METHOD =
  'Attempts are run again twice, on the slots that live workers had: in the order of their starts, and in that of becoming ready. ' +
  'The difference is added to the waits. See docs/analytics.md.'

export const viewGain = (range: string, points: readonly GainPointRow[]): z.output<typeof schedulingGain> => {
  const total = (key: 'jobs' | 'wait_ms' | 'fifo_wait_ms'): number =>
    points.reduce((sum, point) => sum + point[key], 0)
  const most = (key: 'max_wait_ms' | 'fifo_max_wait_ms'): number | null =>
    points.length > 0 ? round(Math.max(...points.map((point) => point[key])), 1) : null
  const [jobs, waitMs, fifoMs] = [total('jobs'), total('wait_ms'), total('fifo_wait_ms')]
  return {
    range,
    jobs,
    mean_wait_ms: ratio(waitMs, jobs, 1),
    fifo_mean_wait_ms: ratio(fifoMs, jobs, 1),
    gain: fifoMs > 0 ? round(1 - waitMs / fifoMs, 4) : null,
    max_wait_ms: most('max_wait_ms'),
    fifo_max_wait_ms: most('fifo_max_wait_ms'),
    points: points.map((point) => ({
      at: point.at,
      jobs: point.jobs,
      mean_wait_ms: round(point.wait_ms / point.jobs, 1),
      fifo_mean_wait_ms: round(point.fifo_wait_ms / point.jobs, 1),
    })),
    method: METHOD,
  }
}
