import type { z } from '@hono/zod-openapi'
import {
  getSummary,
  type JobSums,
  type MinuteSums,
  type SummaryRow,
} from '../../db/queries/analytics-summary.ts'
import type { Run } from '../../db/query.ts'
import { scalingSignal } from '../../db/rules/autoscale.ts'
import { round } from '../jobs/job-view.ts'
import { depthsAhead } from './forecast.ts'
import { quantileOf } from './log-histogram.ts'
import type { summary } from './schemas.ts'

export type Summary = z.output<typeof summary>

/** How an organisation's queue does, in one round trip. */
export const readSummary = async (run: Run, orgId: string): Promise<Summary> => {
  const [row] = await run(getSummary(orgId))
  if (!row) throw new Error('A summary is one row')
  return viewSummary(row)
}

const AHEAD_MINUTES = 15

const viewSummary = (row: SummaryRow): Summary => {
  const { oldest_ready_seconds, predicted_ms, ...depth } = row.depth
  const { slots, paused } = row.load
  const ahead = depthsAhead(row, AHEAD_MINUTES).at(-1)
  return {
    at: row.at,
    depth,
    oldest_ready_seconds: orNull(oldest_ready_seconds, 1),
    last_hour: viewPeriod(row.last_hour),
    last_24h: viewPeriod(row.last_24h),
    throughput_per_minute: perMinute(row, 'finished'),
    submitted_per_minute: perMinute(row, 'submitted'),
    backlog: {
      predicted_seconds: round(predicted_ms / 1000, 3),
      slots,
      drain_seconds: slots > 0 ? round(predicted_ms / 1000 / slots, 3) : null,
    },
    workers: { ...row.workers, wanted: row.autoscale && scalingSignal(row.autoscale).desired },
    forecast: {
      in_seconds: AHEAD_MINUTES * 60,
      depth: orNull(ahead?.jobs, 1),
      work_seconds: orNull(ahead && ahead.workMs / 1000, 1),
    },
    paused,
  }
}

/** Of the last 60 seconds: the present minute, and of the one before it the share that is not over for as long. */
export const perMinute = (
  { at, this_minute, last_minute }: Pick<SummaryRow, 'at' | 'this_minute' | 'last_minute'>,
  key: keyof MinuteSums,
): number => round(this_minute[key] + last_minute[key] * (1 - (Date.parse(at) % 60_000) / 60_000), 1)

const viewPeriod = ({ waits, ran, runtime_ms, ...counts }: JobSums): Summary['last_hour'] => {
  const { submitted, completed, failed, cancelled } = counts
  const waited = (p: number) => orNull(waits && quantileOf(waits, p), 1)
  return {
    ...{ submitted, completed, failed, cancelled },
    success_rate: ratio(completed, completed + failed),
    wait_p50_ms: waited(0.5),
    wait_p90_ms: waited(0.9),
    runtime_mean_ms: ratio(runtime_ms, ran, 1),
  }
}

export const orNull = (value: number | null | undefined, digits: number): number | null =>
  value === null || value === undefined ? null : round(value, digits)

export const ratio = (part: number, whole: number, digits = 4): number | null =>
  whole > 0 ? round(part / whole, digits) : null
