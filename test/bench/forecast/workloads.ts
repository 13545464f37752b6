import { access } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { readHistory } from '../../../worker-runtime/backtest/history.ts'
import { comeAt, drawNormal, type LoadPattern } from '../../support/load-patterns.ts'

export type Workload = { name: string; values: Float64Array }

const DAY = 1_440
const SEED = 1

/** What is forecast may be learned from the first five; the last two know nothing of what comes next. */
const PATTERNS: Record<string, LoadPattern> = {
  'daily sine': comeAt((minute) => 20 * (1 + 0.8 * Math.sin((2 * Math.PI * minute) / DAY))),
  'business hours': (minutes, seed) => {
    // A busier or a quieter hour now and then.
    let mood = 0
    return comeAt((minute, random) => {
      mood = 0.995 * mood + 0.03 * drawNormal(random)
      const [day, hour] = [Math.floor(minute / DAY) % 7, (minute % DAY) / 60]
      const open = day < 5 ? sigmoid(3 * (hour - 8.5)) * sigmoid(3 * (17.5 - hour)) : 0.05
      return (2 + 40 * open) * Math.exp(mood)
    })(minutes, seed)
  },
  'hourly batches': comeAt((minute) => (minute % 60 < 3 ? 60 : 3)),
  'daily batches': comeAt((minute) =>
    [120, 540, 780].some((at) => minute % DAY >= at && minute % DAY < at + 8) ? 80 : 4,
  ),
  'on and off': (minutes, seed) => {
    let isOn = false
    return comeAt((_, random) => {
      if (random() < (isOn ? 1 / 8 : 1 / 40)) isOn = !isOn
      return isOn ? 40 : 1
    })(minutes, seed)
  },
  'random walk': (minutes, seed) => {
    let level = 0
    return comeAt((_, random) => {
      level = Math.min(Math.max(level + 0.05 * drawNormal(random), -2), 2)
      return 20 * Math.exp(level)
    })(minutes, seed)
  },
  'pure noise': comeAt(() => 5),
}

export const madeUpWorkloads = (days: number): Workload[] =>
  Object.entries(PATTERNS).map(([name, pattern]) => ({ name, values: pattern(days * DAY, SEED) }))

const TRACES = ['google2011_jobs.csv.gz', 'llnl_atlas2007.csv.gz', 'wfinstances_dag.csv.gz']
/** As much as is kept. */
const MOST_MINUTES = 35 * DAY

/** The runtimes of a history's jobs by the minute of their submission, the newest five weeks; those that are there. */
export const tracedWorkloads = async (folder: string): Promise<Workload[]> => {
  const found: Workload[] = []
  for (const file of TRACES.map((name) => join(folder, name))) {
    if (
      !(await access(file).then(
        () => true,
        () => false,
      ))
    )
      continue
    const jobs = await readHistory(file)
    const minuteOf = ({ submitS }: { submitS: number }): number => Math.floor(submitS / 60)
    // The last minute is not whole.
    const values = new Float64Array(jobs.reduce((most, job) => Math.max(most, minuteOf(job)), 0))
    for (const job of jobs) {
      const minute = minuteOf(job)
      if (minute < values.length) values[minute] = (values[minute] as number) + job.runtimeMs
    }
    found.push({ name: basename(file, '.csv.gz'), values: values.slice(-MOST_MINUTES) })
  }
  return found
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))
