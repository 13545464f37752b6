import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export type MetricsText = {
  /** Names of the metrics, with their types. */
  readonly types: ReadonlyMap<string, string>
  /** By the name with its labels, as they are written. */
  readonly values: ReadonlyMap<string, number>
}

/** Reads Prometheus's text format. */
export const readMetrics = (text: string): MetricsText => {
  const types = new Map<string, string>()
  const values = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (name && type) types.set(name, type)
    const [, sample, value] = /^([^#\s{]+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
    if (sample && value) values.set(sample, value === '+Inf' ? Infinity : Number(value))
  }
  return { types, values }
}

const DOCUMENT = new URL('../../docs/metrics.md', import.meta.url)

/** `name type` of each metric in the tables of a section of docs/metrics.md, in the order of their names. */
export const documentedMetrics = (section: string): string[] => {
  const text = readFileSync(DOCUMENT, 'utf8')
  const [, body] = text.split(`\n## ${section}\n`)
  if (body === undefined) throw new Error(`docs/metrics.md has no section "${section}"`)
  const rows = (body.split('\n## ')[0] ?? '').matchAll(/^\| `(\w+)` \| (\w+) \|/gm)
  return [...rows].map(([, name, type]) => `${name} ${type}`).sort()
}

/** The same of what is served. */
export const servedMetrics = (text: string): string[] =>
  [...readMetrics(text).types].map(([name, type]) => `${name} ${type}`).sort()

const promtool = (args: string[], input = '') => spawnSync('promtool', args, { input, encoding: 'utf8' })

/** Options of a test that asks promtool. */
export const WITH_PROMTOOL = { skip: promtool(['--version']).error ? 'promtool is not installed' : false }

/** What `promtool check metrics` objects to. */
export const lintMetrics = (text: string): string => {
  const { status, stdout, stderr } = promtool(['check', 'metrics'], text)
  return status === 0 ? '' : `${stdout}${stderr}` || `promtool ended with ${status}`
}
