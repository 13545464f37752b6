import type { SeenJob } from './observer.ts'

/** How well runtimes were predicted at submission, of jobs that have completed since. */
export type Accuracy = {
  jobs: number
  /** Predictions are off by this factor, up or down: 1 is perfect. The geometric mean over the jobs. */
  off_by: number | null
  /** The share of runtimes that stayed below their p90: 0.9 is right. */
  p90_coverage: number | null
}

export const measureAccuracy = (jobs: readonly SeenJob[]): Accuracy => {
  const runs = jobs.flatMap((job) => {
    const actualMs = runtimeMs(job)
    return actualMs === undefined ? [] : [{ actualMs, ...job.prediction }]
  })
  const errors = runs.map(({ actualMs, p50_ms }) => Math.abs(Math.log(Math.max(p50_ms, 1) / actualMs)))
  const covered = runs.map(({ actualMs, p90_ms }) => (actualMs <= p90_ms ? 1 : 0))
  const error = mean(errors)
  return {
    jobs: runs.length,
    off_by: error === null ? null : round(Math.exp(error)),
    p90_coverage: rounded(mean(covered)),
  }
}

/** Of its last attempt. Only jobs that have completed tell how long they take. */
export const runtimeMs = ({ status, started_at, finished_at }: SeenJob): number | undefined =>
  status === 'completed' && started_at && finished_at
    ? Math.max(1, Date.parse(finished_at) - Date.parse(started_at))
    : undefined

export const median = (values: readonly number[]): number | null => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? null
}

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length

const round = (value: number): number => Math.round(value * 1000) / 1000
const rounded = (value: number | null): number | null => (value === null ? null : round(value))

/**
 * Beginning and end of the run, to be compared: half a minute each, less in a short run. Most is learned in the very first of
 * it, when a series has run a few times.
 */
export const phasesOf = (durationMs: number) => {
  const ms = Math.min(30_000, durationMs / 3)
  return { firstUntilMs: ms / 3, earlyUntilMs: ms, lateMs: ms }
}
