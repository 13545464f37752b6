import { percentile } from '../report.ts'

/** What a job was promised, and what became of it. */
export type KeptPromise = {
  name: string
  tenant: string
  source: string
  waitS: number
  promisedWaitS: number
  /** It ended before its `finish_p90_at`. */
  inTime: boolean
}

type Accuracy = {
  jobs: number
  mean_wait_s: number
  median_abs_error_s: number
  mean_abs_error_s: number
  /** Above nought: jobs start later than promised. */
  mean_error_s: number
  /** Mean absolute error by mean wait. */
  error_by_wait: number
  finished_by_p90: number
}

export type Phases = {
  all: Accuracy
  first_half: Accuracy
  second_half: Accuracy
  by_name: Record<string, Accuracy>
  sources: Record<string, number>
}

/** In the order of submission: the first half is while the system learns what the jobs are. */
export const summarisePhases = (kept: readonly KeptPromise[]): Phases => {
  const half = Math.floor(kept.length / 2)
  const byName = Object.groupBy(kept, ({ name }) => name)
  const bySource = Object.groupBy(kept, ({ source }) => source)
  return {
    all: summarise(kept),
    first_half: summarise(kept.slice(0, half)),
    second_half: summarise(kept.slice(half)),
    by_name: Object.fromEntries(Object.entries(byName).map(([name, jobs = []]) => [name, summarise(jobs)])),
    sources: Object.fromEntries(Object.entries(bySource).map(([source, jobs = []]) => [source, jobs.length])),
  }
}

const summarise = (kept: readonly KeptPromise[]): Accuracy => {
  const errors = kept.map(({ waitS, promisedWaitS }) => waitS - promisedWaitS)
  const sizes = errors.map(Math.abs)
  const meanWait = mean(kept.map(({ waitS }) => waitS))
  return {
    jobs: kept.length,
    mean_wait_s: round(meanWait),
    median_abs_error_s: round(percentile(sizes, 0.5)),
    mean_abs_error_s: round(mean(sizes)),
    mean_error_s: round(mean(errors)),
    error_by_wait: round(mean(sizes) / meanWait),
    finished_by_p90: round(mean(kept.map(({ inTime }) => (inTime ? 1 : 0)))),
  }
}

const COLUMNS: [string, (accuracy: Accuracy) => string][] = [
  ['jobs', ({ jobs }) => `${jobs}`],
  ['mean wait', ({ mean_wait_s }) => `${mean_wait_s} s`],
  ['median error', ({ median_abs_error_s }) => `${median_abs_error_s} s`],
  ['mean error', ({ mean_abs_error_s }) => `${mean_abs_error_s} s`],
  ['later by', ({ mean_error_s }) => `${mean_error_s} s`],
  ['error / wait', ({ error_by_wait }) => `${Math.round(error_by_wait * 100)} %`],
  ['by finish_p90_at', ({ finished_by_p90 }) => `${Math.round(finished_by_p90 * 100)} %`],
]

export const renderPhases = ({ all, first_half, second_half, by_name, sources }: Phases): string => {
  const rows = { 'first half': first_half, 'second half': second_half, all, ...by_name }
  const line = (what: string, cells: string[]): string =>
    what.padEnd(14) + cells.map((cell) => cell.padStart(18)).join('')
  return [
    line(
      'start',
      COLUMNS.map(([title]) => title),
    ),
    ...Object.entries(rows).map(([what, accuracy]) =>
      line(
        what,
        COLUMNS.map(([, cell]) => cell(accuracy)),
      ),
    ),
    `predicted by  ${Object.entries(sources)
      .map(([source, jobs]) => `${source} ${jobs}`)
      .join(', ')}`,
  ].join('\n')
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length

const round = (value: number): number => Math.round(value * 1000) / 1000
