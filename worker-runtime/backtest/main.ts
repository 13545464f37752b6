import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { numberOf, runCommand, UsageError, wholeNumberOf } from '../command.ts'
import type { Accuracy } from './accuracy.ts'
import { readHistory } from './history.ts'
import { POLICIES } from './policies.ts'
import { createProgressBar } from './progress-bar.ts'
import { formatReport, type Report } from './report.ts'
import { runTasks } from './run-tasks.ts'
import type { PolicyScore } from './score.ts'
import type { Task, TaskOptions } from './task.ts'

const HELP = `Usage: npm run backtest -- FILE [options]

What SmartQueue would have made of a history: how well it predicts runtimes, and what that is worth in waiting time.
FILE is a CSV file, perhaps gzipped, with a header. Columns: submit_s, runtime_ms, type; and, where known, id, wait_s, name,
user, org, cpu, mem_mb, requested_ms, payload_size, depends_on (ids, separated by spaces). docs/model.md describes them.

  --load L       how busy the workers are, between 0 and 2 (0.9)
  --workers N    how many of them (4)
  --slots N      jobs that each of them runs at the same time (8)
  --burst        four times the arrivals on a tenth of the jobs
  --floor-ms M   runtimes below this count as this (10)
  --skip N       jobs at the beginning that do not count for the accuracy (2000, at most half of them)
  --seed N       of the network's first weights and its batches (1)
  --json         print one object and nothing else
  --help         print this`

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      load: { type: 'string', default: '0.9' },
      workers: { type: 'string', default: '4' },
      slots: { type: 'string', default: '8' },
      burst: { type: 'boolean', default: false },
      'floor-ms': { type: 'string', default: '10' },
      skip: { type: 'string', default: '2000' },
      seed: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const [file, ...others] = positionals
  if (!file || others.length > 0) throw new UsageError(`Name one file with a history.\n\n${HELP}`)
  const options = {
    file,
    load: numberOf('load', values.load, 0.01, 2),
    workers: wholeNumberOf('workers', values.workers, 1, 10_000),
    slots: wholeNumberOf('slots', values.slots, 1, 1_000),
    burst: values.burst,
    floorMs: numberOf('floor-ms', values['floor-ms'], 1, 1e9),
    skip: wholeNumberOf('skip', values.skip, 0, 1e9),
    seed: wholeNumberOf('seed', values.seed, 0, 2 ** 31),
  }
  const report = await backtest(options)
  console.log(values.json ? JSON.stringify(report) : formatReport(report, options))
  return 0
}

/** The longest parts first, so that the cores are busy to the end. */
const PARTS = [
  'smartqueue-no-lane',
  'smartqueue-no-shares',
  'smartqueue',
  'accuracy',
  ...POLICIES.filter((name) => !name.startsWith('smartqueue')),
] as const

const backtest = async (options: TaskOptions): Promise<Report> => {
  const startedAtMs = performance.now()
  const jobs = (await readHistory(options.file)).length
  const skip = Math.min(options.skip, Math.floor(jobs / 2))
  const bar = createProgressBar(process.stderr)
  const tasks: Task[] = PARTS.map((part) => ({ ...options, skip, part }))
  const results = await runTasks(tasks, (done) => {
    const share = done.reduce((sum, part) => sum + part, 0) / done.length
    const running = PARTS.filter((_, n) => (done[n] ?? 0) > 0 && (done[n] ?? 0) < 1)
    bar.show(share, running.join(', '))
  })
  bar.clear()
  const byPart = new Map<string, unknown>(PARTS.map((part, n) => [part, results[n]]))
  return {
    trace: basename(options.file).replace(/\.csv(\.gz)?$/, ''),
    jobs,
    skipped: skip,
    seconds: Number(((performance.now() - startedAtMs) / 1000).toFixed(1)),
    predictors: (byPart.get('accuracy') as Accuracy).predictors,
    policies: withGains(byPart),
  }
}

const withGains = (byPart: ReadonlyMap<string, unknown>): Report['policies'] => {
  const scoreOf = (name: string) => byPart.get(name) as Omit<PolicyScore, 'gain_share'>
  const [fifo, oracle] = [scoreOf('fifo').mean_wait_s, scoreOf('oracle').mean_wait_s]
  return Object.fromEntries(
    POLICIES.map((name) => {
      const score = scoreOf(name)
      return [
        name,
        { ...score, gain_share: fifo > oracle ? (fifo - score.mean_wait_s) / (fifo - oracle) : 0 },
      ]
    }),
  ) as Report['policies']
}

runCommand('The backtest failed', main)
