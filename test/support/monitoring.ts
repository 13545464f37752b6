import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { parse } from 'yaml'

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

export const readText = (path: string): string => readFileSync(root(path), 'utf8')

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

/** Every metric that there is: documented, of Node.js, recorded by our rules, or of others. */
export const knownMetrics = async (): Promise<Set<string>> => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const ofNode = (await registry.getMetricsAsJSON()).map(({ name }) => name)
  registry.clear()
  const recorded = readRuleGroups().flatMap(({ rules }) => rules.flatMap(({ record }) => record ?? []))
  return new Set([...documentedMetrics(), ...ofNode, ...recorded, ...FOREIGN])
}

const DOCUMENTED = 'docs/metrics.md'

const documentedMetrics = (): string[] => {
  if (!existsSync(root(DOCUMENTED))) return JSON.parse(readText('test/k8s/metric-names.json'))
  // A row of a table whose first cell begins with a name, whatever follows it there.
  const rows = readText(DOCUMENTED).matchAll(/^\|\s*`(smartqueue_\w+)/gm)
  return [...rows].map(([, name = '']) => name)
}
