import { percentile } from '../report.ts'
import { type Execution, largestDeviation, untilSlotFrees } from './windows.ts'

export type Row = {
  scenario: string
  what: string
  measured: number
  limit: number
  unit: 's' | '%' | 'points' | '×'
  holds: boolean
}

export const atMost = (row: Omit<Row, 'holds'>): Row => ({ ...row, holds: row.measured <= row.limit })
export const atLeast = (row: Omit<Row, 'holds'>): Row => ({ ...row, holds: row.measured >= row.limit })

/** Within 10 % of the weights over every window in which all are backlogged. */
export const windowRow = (
  scenario: string,
  executions: readonly Execution[],
  options: { windowS: number; weights: Readonly<Record<string, number>> },
): Row => {
  const { deviation, windows } = largestDeviation(executions, options)
  const what = `largest deviation from the weights, windows of ${options.windowS} s (${windows})`
  return atMost({ scenario, what, measured: 100 * deviation, limit: 10, unit: '%' })
}

/** The victims' p95 wait. The limit is `times` × their p95 wait alone, plus the p95 of the time until a slot frees. */
export const waitRow = (
  scenario: string,
  run: {
    victims: readonly Execution[]
    alone: readonly Execution[]
    all: readonly Execution[]
    slots: number
    times: number
  },
): Row => {
  const [measured, alone] = [p95(run.victims), p95(run.alone)]
  const slotS = percentile(untilSlotFrees(run.victims, run.all, run.slots), 0.95)
  return atMost({
    scenario,
    what: `p95 wait; limit ${run.times} × ${seconds(alone)} alone + ${seconds(slotS)} until a slot frees`,
    measured,
    limit: run.times * alone + slotS,
    unit: 's',
  })
}

const p95 = (executions: readonly Execution[]): number =>
  percentile(
    executions.map(({ readyS, startedS }) => startedS - readyS),
    0.95,
  )

const seconds = (value: number): string => `${value.toFixed(3)} s`

export const printRows = (rows: readonly Row[]): string => {
  const cells = rows.map(({ scenario, what, measured, limit, unit, holds }) => [
    holds ? 'holds' : 'MISSED',
    `${show(measured)} ${unit}`,
    `${show(limit)} ${unit}`,
    scenario,
    what,
  ])
  const all = [['', 'measured', 'limit', 'scenario', 'what'], ...cells]
  const widths = all[0]?.map((_, n) => Math.max(...all.map((row) => row[n]?.length ?? 0))) ?? []
  return all
    .map((row) =>
      row
        .map((cell, n) => (n === 1 || n === 2 ? cell.padStart(widths[n] ?? 0) : cell.padEnd(widths[n] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const show = (value: number): string => value.toFixed(Math.abs(value) < 10 ? 3 : 1)
