import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { runTasks } from '../../../worker-runtime/backtest/run-tasks.ts'
import type { PolicyScore } from '../../../worker-runtime/backtest/score.ts'
import { atMost, type Row } from './rows.ts'

const PARTS = ['smartqueue', 'smartqueue-no-shares', 'fifo', 'oracle'] as const

/** The defaults of npm run backtest. */
const SETTINGS = { load: 0.9, workers: 4, slots: 8, burst: false, floorMs: 10, skip: 0, seed: 1 }

/** How much of the gain over FIFO in mean wait is lost to shares, for each trace that is available. */
export const traceRows = async (folder: string, say: (line: string) => void): Promise<Row[]> => {
  const files = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.csv.gz'))
  if (files.length === 0) say(`There are no traces in ${folder}.`)
  const rows: Row[] = []
  for (const name of files) {
    say(`${name}…`)
    const tasks = PARTS.map((part) => ({ ...SETTINGS, file: join(folder, name), part }))
    const scores = (await runTasks(tasks, () => {})) as Omit<PolicyScore, 'gain_share'>[]
    const [fair, unfair, fifo, oracle] = scores.map((score) => score.mean_wait_s) as [
      number,
      number,
      number,
      number,
    ]
    const gain = (meanWaitS: number): number => (100 * (fifo - meanWaitS)) / (fifo - oracle)
    rows.push(
      atMost({
        scenario: name.replace('.csv.gz', ''),
        what: `gain lost: ${gain(fair).toFixed(1)} % of the oracle's with shares, ${gain(unfair).toFixed(1)} % without`,
        measured: gain(unfair) - gain(fair),
        limit: 5,
        unit: 'points',
      }),
    )
  }
  return rows
}
