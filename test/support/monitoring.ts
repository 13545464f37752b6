import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { type Selected, selectionsOf } from './promql.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

export const readText = (path: string): string => readFileSync(pathOf(path), 'utf8')

export const COMPONENT = 'k8s/components/monitoring'

export type Rule = {
  alert?: string
  record?: string
  expr: string
  for?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

export type RuleGroup = { name: string; interval: string; rules: Rule[] }

export const readRuleGroups = (): RuleGroup[] => parse(readText(`${COMPONENT}/alerts.yaml`)).spec.groups

export const alertsOf = (groups: readonly RuleGroup[]): (Rule & { alert: string })[] =>
  groups.flatMap(({ rules }) => rules.flatMap((rule) => (rule.alert ? [{ ...rule, alert: rule.alert }] : [])))

/** What others serve: Prometheus itself, and kube-state-metrics. */
const FOREIGN = ['up', 'scrape_duration_seconds', 'ALERTS', 'kube_horizontalpodautoscaler_status_condition']

/** Given to every target by its monitor. */
const OF_TARGETS = ['namespace', 'component', 'job', 'pod']

type Metric = { type: string; labels: Map<string, string[]> }

/**
 * Makes what fails at an expression that reads something that is not served: a metric, a label, a value of one; or a counter
 * otherwise than by how much it grows, or a gauge like that.
 */
export const createReadings = (): ((expression: string) => void) => {
  const served = servedMetrics()
  const recorded = readRuleGroups().flatMap(({ rules }) => rules.flatMap(({ record }) => record ?? []))
  return (expression) => {
    for (const selected of selectionsOf(expression)) {
      const { metric } = selected
      const found = served.get(metric) ?? served.get(metric.replace(/_(bucket|sum|count)$/, ''))
      const grows = selected.within === 'rate' || selected.within === 'increase'
      assert.ok(found || recorded.includes(metric) || FOREIGN.includes(metric), `${metric} in ${expression}`)
      assert.equal(grows, found !== undefined && found.type !== 'gauge', `${metric} in ${expression}`)
      if (found) checkLabels(found, selected)
    }
  }
}

const checkLabels = ({ type, labels }: Metric, { metric, matchers, groupedBy }: Selected): void => {
  const known = [...OF_TARGETS, ...labels.keys(), ...(type === 'histogram' ? ['le'] : [])]
  for (const label of [...groupedBy, ...matchers.map((one) => one.label)])
    assert.ok(known.includes(label), `${label} of ${metric}`)
  for (const { label, operator, value } of matchers) {
    const values = labels.get(label) ?? []
    if (values.length > 0 && !operator.includes('~'))
      assert.ok(values.includes(value), `${label}="${value}" of ${metric}`)
  }
}

const servedMetrics = (): Map<string, Metric> => {
  const rows = readText('docs/metrics.md').matchAll(/^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\|/gm)
  return new Map(
    [...rows].map(([, name = '', type = '', labels = '']) => [name, { type, labels: labelsIn(labels) }]),
  )
}

/** As in "`class`: critical, high; `status`: ready". */
const labelsIn = (cell: string): Map<string, string[]> =>
  new Map(
    cell.split(';').flatMap((part): [string, string[]][] => {
      const [, label, values = ''] = /^\s*`(\w+)`(?::(.*))?/.exec(part) ?? []
      return label ? [[label, values.split(',').flatMap((value) => value.trim() || [])]] : []
    }),
  )
