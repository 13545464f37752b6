import type { BenchOptions, BenchReport } from '../report.ts'
import {
  BY_P90,
  byCount,
  type Outcome,
  PATIENT,
  type Policy,
  PREDICTED_WORK,
  REACTIVE,
  STATIC,
  simulate,
  WITHOUT_FORECAST,
} from './simulation.ts'
import { createWorkloads } from './workloads.ts'

/** None of those by which the arrival window, the forecast's share and the median were chosen (7 and 107). */
const SEEDS = [1_007, 2_007, 3_007]

/** As many as a pod has slots. The shortest waits of all numbers that cost about as much as B+R+F: the second table has others. */
export const BY_COUNT = byCount(10)
const POLICIES = [PREDICTED_WORK, WITHOUT_FORECAST, REACTIVE, BY_P90, PATIENT, BY_COUNT, STATIC]
const OTHER_COUNTS = [5, 8, 15, 20, 30].map(byCount)

/**
 * What scaling by predicted work is worth: the closed loop, simulated over the same jobs under each policy. The mean over some
 * seeds. Nothing in it depends on the machine.
 */
export const benchAutoscale = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const seeds = quick ? SEEDS.slice(0, 1) : SEEDS
  const outcomes: Outcome[] = []
  for (const policy of [...POLICIES, ...OTHER_COUNTS]) {
    say(`Simulating ${policy.name}…`)
    outcomes.push(...meanOutcomes(policy, seeds))
  }
  const totals = [...POLICIES, ...OTHER_COUNTS].map(({ name }) => totalOf(name, outcomes))
  return { data: { outcomes, totals }, text: [renderWaits(outcomes), renderTotals(totals)].join('\n\n') }
}

const meanOutcomes = (policy: Policy, seeds: readonly number[]): Outcome[] => {
  const runs = seeds.map((seed) => createWorkloads(seed).map((workload) => simulate(workload, policy, seed)))
  const [first = []] = runs
  return first.map((outcome, n) => {
    const same = runs.flatMap((run) => run[n] ?? [])
    const mean = (value: (one: Outcome) => number): number =>
      same.reduce((sum, one) => sum + value(one), 0) / same.length
    return {
      ...outcome,
      jobs: Math.round(mean(({ jobs }) => jobs)),
      wait_p50_s: mean(({ wait_p50_s }) => wait_p50_s),
      wait_p95_s: mean(({ wait_p95_s }) => wait_p95_s),
      wait_max_s: mean(({ wait_max_s }) => wait_max_s),
      pod_hours: mean(({ pod_hours }) => pod_hours),
    }
  })
}

type Total = { policy: string; worst_p95_s: number; mean_p95_s: number; pod_hours: number }

const totalOf = (policy: string, outcomes: readonly Outcome[]): Total => {
  const own = outcomes.filter((one) => one.policy === policy)
  const waits = own.map(({ wait_p95_s }) => wait_p95_s)
  return {
    policy,
    worst_p95_s: Math.max(...waits),
    mean_p95_s: waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
    pod_hours: own.reduce((sum, { pod_hours }) => sum + pod_hours, 0),
  }
}

/** A row for each workload and policy: the table of docs/scaling.md. */
const renderWaits = (outcomes: readonly Outcome[]): string => {
  const shown = outcomes.filter(({ policy }) => POLICIES.some(({ name }) => name === policy))
  const workloads = [...new Set(shown.map(({ workload }) => workload))]
  const rows = workloads.flatMap((workload) =>
    shown
      .filter((one) => one.workload === workload)
      .map((one, n) => [
        n === 0 ? workload : '',
        one.policy,
        ...[one.wait_p50_s, one.wait_p95_s, one.wait_max_s].map((seconds) => `${seconds.toFixed(1)} s`),
        one.pod_hours.toFixed(2),
      ]),
  )
  return renderTable(['workload', 'scaled by', 'p50 wait', 'p95 wait', 'longest', 'pod-hours'], rows)
}

const renderTotals = (totals: readonly Total[]): string =>
  renderTable(
    ['all workloads, scaled by', 'worst p95', 'mean p95', 'pod-hours'],
    totals.map(({ policy, worst_p95_s, mean_p95_s, pod_hours }) => [
      policy,
      `${worst_p95_s.toFixed(1)} s`,
      `${mean_p95_s.toFixed(1)} s`,
      pod_hours.toFixed(1),
    ]),
  )

/** As Markdown, to be pasted. */
const renderTable = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = head.map((title, n) => Math.max(title.length, ...rows.map((row) => row[n]?.length ?? 0)))
  const isWord = (n: number): boolean => !/^[\d.]+( s)?$/.test(rows[0]?.[n] ?? '')
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, n) =>
      isWord(n) ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0),
    )
    return `| ${padded.join(' | ')} |`
  }
  const rules = widths.map((width, n) => (isWord(n) ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`))
  return [line(head), `|${rules.join('|')}|`, ...rows.map(line)].join('\n')
}
