import type { Contender } from './contender.ts'
import { BEFORE, bestPeer, METRICS, type Metric, type Standings, SUBJECT, timesBetter } from './metrics.ts'
import type { Target } from './targets.ts'

/** The report for people. A last column of more than 1 means better than the best of the peers. */
export const printStandings = (contenders: readonly Contender[], standings: Standings): string => {
  const isBeside = contenders.some(({ key }) => key === BEFORE)
  const head = ['', ...contenders.map(({ name }) => name), ...(isBeside ? ['× before'] : []), '× best peer']
  const rows = METRICS.map((metric) => [
    `${metric.title} (${metric.unit})`,
    ...contenders.map(({ key }) => show(standings[key]?.[metric.key], metric)),
    ...(isBeside
      ? [show(timesBetter(metric, standings[SUBJECT]?.[metric.key], standings[BEFORE]?.[metric.key]))]
      : []),
    show(timesBetter(metric, standings[SUBJECT]?.[metric.key], bestPeer(standings, metric))),
  ])
  const about = contenders.map(({ name, about }) => `  ${name}: ${about}`)
  return [align([head, ...rows]), '', ...about].join('\n')
}

export const printTargets = (targets: readonly Target[]): string =>
  align(targets.map(({ what, measured, reached }) => [verdict(reached), show(measured), what]))

const verdict = (reached: boolean | undefined): string => {
  if (reached === undefined) return 'not measured'
  return reached ? 'reached' : 'MISSED'
}

const show = (value: number | undefined, metric?: Metric): string => {
  if (value === undefined || Number.isNaN(value)) return '–'
  const digits = value >= 100 || metric?.unit === 'jobs/s' ? 0 : 2
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** Columns as wide as their widest cell: the first to the left, numbers to the right. */
export const align = (rows: readonly string[][]): string => {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  const isText = (column: number): boolean => rows.slice(1).every((row) => !/^[+\d–]/.test(row[column] ?? ''))
  const cell = (text: string, column: number): string =>
    isText(column) ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0)
  return rows.map((row) => row.map(cell).join('  ').trimEnd()).join('\n')
}
