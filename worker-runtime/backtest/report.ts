import type { PredictorName } from './accuracy.ts'
import type { PolicyName } from './policies.ts'
import type { PolicyScore, PredictorScore } from './score.ts'

export type Report = {
  trace: string
  jobs: number
  skipped: number
  seconds: number
  predictors: Record<PredictorName, PredictorScore>
  policies: Record<PolicyName, PolicyScore>
}

/** Two tables for people. */
export const formatReport = (
  report: Report,
  settings: { load: number; workers: number; slots: number; burst: boolean },
): string => {
  const { trace, jobs, skipped, seconds, predictors, policies } = report
  const accuracy = table(
    ['predictor', 'mean |ln error|', 'median', 'within 2×', 'Spearman', 'below p90'],
    Object.entries(predictors).map(([name, score]) => [
      name,
      score.mean_abs_log_error.toFixed(4),
      score.median_abs_log_error.toFixed(4),
      percent(score.within_2x),
      score.spearman.toFixed(3),
      percent(score.coverage),
    ]),
  )
  const scheduling = table(
    ['policy', 'mean wait', 'p95', 'longest', 'mean slowdown', 'of the gain'],
    Object.entries(policies).map(([name, score]) => [
      name,
      duration(score.mean_wait_s),
      duration(score.p95_wait_s),
      duration(score.max_wait_s),
      score.mean_slowdown.toFixed(1),
      percent(score.gain_share),
    ]),
  )
  const { load, workers, slots, burst } = settings
  return [
    `${trace}: ${jobs.toLocaleString('en')} jobs, ${seconds} s`,
    '',
    `How long jobs run, each predicted from what had ended before (the first ${skipped.toLocaleString('en')} left out):`,
    '',
    accuracy,
    '',
    `How long they wait, at load ${load} on ${workers} workers with ${slots} slots each${burst ? ', with a burst' : ''}; the gain is that of an oracle over FIFO:`,
    '',
    scheduling,
  ].join('\n')
}

const table = (head: string[], rows: string[][]): string => {
  const widths = head.map((title, n) => Math.max(title.length, ...rows.map((row) => row[n]?.length ?? 0)))
  const line = (cells: string[]): string =>
    cells.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join('  ')
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n')
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

const duration = (seconds: number): string => {
  if (seconds < 100) return `${seconds.toFixed(1)} s`
  if (seconds < 6000) return `${(seconds / 60).toFixed(1)} min`
  return `${(seconds / 3600).toFixed(1)} h`
}
