import type { Kernels } from './kernels.ts'
import type { PastRun } from './series-memory.ts'
import type { Baseline, SeriesView } from './series-view.ts'

/** Those who say how long a job will run, in the order in which their errors are kept. */
export const EXPERTS = [
  'series',
  'last-two',
  'median',
  'kernel',
  'alike',
  'organisation',
  'type-median',
  'lstm',
] as const

export type Expert = (typeof EXPERTS)[number]

/** Each expert's p50 as ln(ms). The network's place has the baseline that it would correct. */
export const adviseAll = (
  view: SeriesView,
  baseline: Baseline,
  { kernels, ofOrg }: { kernels: Kernels | undefined; ofOrg: number | undefined },
): number[] => {
  const { runs } = view.memory
  const last = runs.at(-1)?.log ?? baseline.log
  const advice: Record<Expert, number> = {
    series: baseline.log,
    'last-two': (last + (runs.at(-2)?.log ?? last)) / 2,
    median: medianOf(runs) ?? baseline.log,
    kernel: kernels?.bySize ?? baseline.log,
    alike: kernels?.alike ?? ofOrg ?? baseline.log,
    organisation: ofOrg ?? baseline.log,
    'type-median': view.orgType?.medianLog ?? baseline.log,
    lstm: baseline.log,
  }
  return EXPERTS.map((expert) => advice[expert])
}

const medianOf = (runs: readonly PastRun[]): number | undefined =>
  runs.map(({ log }) => log).sort((a, b) => a - b)[runs.length >> 1]
