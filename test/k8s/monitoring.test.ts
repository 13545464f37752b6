import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PodMonitor, PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'
import { ScrapeConfig } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1alpha1'
import { parse, stringify } from 'yaml'
import { scalingSignal } from '../../db/rules/autoscale.ts'
import {
  alertsOf,
  COMPONENT,
  createReadings,
  type Rule,
  type RuleGroup,
  readRuleGroups,
  readText,
} from '../support/monitoring.ts'
import { groupingOf } from '../support/promql.ts'

const groups = readRuleGroups()
const rules = groups.flatMap((group) => group.rules)
const alerts = alertsOf(groups)

describe('the manifests', () => {
  const read = (file: string) => parse(readText(`${COMPONENT}/${file}`))

  test('are what the Prometheus operator takes', () => {
    new PodMonitor(read('pod-monitor.yaml')).validate()
    new PrometheusRule(read('alerts.yaml')).validate()
    const scrapeConfig = read('scrape-config.yaml')
    new ScrapeConfig(scrapeConfig).validate()
    const [patch] = parse(read('functions-token/kustomization.yaml').patches[0].patch)
    assert.equal(patch.path, '/spec/authorization')
    new ScrapeConfig({
      ...scrapeConfig,
      spec: { ...scrapeConfig.spec, authorization: patch.value },
    }).validate()
  })

  test('are all listed, and list only what is there', () => {
    const { resources, configMapGenerator } = read('kustomization.yaml')
    assert.deepEqual(resources, ['pod-monitor.yaml', 'scrape-config.yaml', 'alerts.yaml'])
    const [dashboard] = configMapGenerator
    assert.deepEqual(dashboard.files, ['smartqueue.json=dashboard.json'])
    assert.equal(dashboard.options.disableNameSuffixHash, true)
    assert.equal(dashboard.options.labels.grafana_dashboard, '1')
  })

  test('give every target the labels that rules and dashboard go by', () => {
    const { labels } = read('scrape-config.yaml').spec.staticConfigs[0]
    assert.deepEqual(labels, { job: 'smartqueue-functions', component: 'functions', namespace: 'smartqueue' })
    const [endpoint] = read('pod-monitor.yaml').spec.podMetricsEndpoints
    const given = endpoint.relabelings.map(({ targetLabel }: { targetLabel: string }) => targetLabel)
    assert.deepEqual(given, ['pod', 'component', 'job'])
  })
})

describe('the rules', () => {
  test('parse, and read what is served: counters by how much they grow, gauges as they are', () => {
    const check = createReadings()
    for (const { expr } of rules) check(expr)
  })

  test('each say how bad it is, what it is in numbers, and where to read on', () => {
    for (const { alert, labels, annotations, for: lasting } of alerts) {
      assert.match(labels?.severity ?? '', /^(critical|warning)$/, alert)
      assert.ok(lasting, `${alert} waits before it fires`)
      assert.deepEqual(Object.keys(annotations ?? {}), ['summary', 'description', 'runbook_url'], alert)
    }
  })

  test('of one name can be told apart', () => {
    const told = alerts.map(({ alert, labels }) => JSON.stringify([alert, labels]))
    assert.equal(new Set(told).size, told.length)
  })

  test('speak only of labels that their expression keeps', () => {
    for (const { alert, expr, annotations } of alerts) {
      const spoken = Object.values(annotations ?? {})
        .join()
        .matchAll(/\$labels\.(\w+)/g)
      for (const [, label = ''] of spoken) assert.ok(groupingOf(expr).has(label), `${label} in ${alert}`)
    }
  })

  test('know what a worker can do, as the scaling has it', () => {
    const settings = {
      slots_per_worker: 1,
      drain_goal_seconds: 1,
      lead_seconds: 1,
      min_workers: 1,
      max_workers: 1,
    }
    const load = { queued_seconds: 0, running_seconds: 0, arriving_per_second: 0, scheduled_seconds: 0 }
    const { T } = scalingSignal({ ...load, forecast_p50_seconds: 0, ...settings })
    const capacity = rules.find(({ record }) => record === 'namespace:smartqueue_worker_capacity_seconds:max')
    assert.match(capacity?.expr ?? '', new RegExp(`/ ${T}$`))
  })
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

describe('with promtool', { skip: hasPromtool ? false : 'promtool is not installed' }, () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'smartqueue-rules-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const promtool = (...args: string[]): void => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  }

  const write = (file: string, written: readonly RuleGroup[]): void =>
    writeFileSync(join(folder, file), stringify({ groups: written }))

  test('the rules are taken', () => {
    write('whole.yaml', groups)
    promtool('check', 'rules', 'whole.yaml')
  })

  test('the dashboard asks what Prometheus understands', () => {
    const { panels } = JSON.parse(readText(`${COMPONENT}/dashboard.json`))
    const asked = panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) => targets)
    const asRules = asked.map(({ expr }: { expr: string }, number: number) => ({
      record: `panel:${number}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }))
    write('dashboard.yaml', [{ name: 'dashboard', interval: '30s', rules: asRules }])
    promtool('check', 'rules', 'dashboard.yaml')
  })

  test('alerts fire when they should, and only then', () => {
    write('rules.yaml', groups.map(summarised))
    copyFileSync(
      fileURLToPath(new URL('alerts.test.yaml', import.meta.url)),
      join(folder, 'alerts.test.yaml'),
    )
    promtool('test', 'rules', 'alerts.test.yaml')
  })
})

/** Without what the unit tests would only repeat. */
const summarised = (group: RuleGroup): RuleGroup => ({
  ...group,
  rules: group.rules.map(
    ({ annotations, ...rule }): Rule => ({
      ...rule,
      ...(annotations?.summary !== undefined && { annotations: { summary: annotations.summary } }),
    }),
  ),
})

test('every alert has a case that fires, and one that does not', () => {
  const { tests } = parse(readText('test/k8s/alerts.test.yaml'))
  type Case = { alertname: string; exp_alerts?: { exp_labels: Record<string, string> }[] }
  const cases: Case[] = tests.flatMap((one: { alert_rule_test: Case[] }) => one.alert_rule_test)
  for (const { alert, labels = {} } of alerts) {
    const ofAlert = cases.filter(({ alertname }) => alertname === alert)
    const fires = ofAlert.some(({ exp_alerts = [] }) =>
      exp_alerts.some(({ exp_labels }) => Object.entries(labels).every(([k, v]) => exp_labels[k] === v)),
    )
    assert.ok(fires, `${alert} ${JSON.stringify(labels)}`)
    assert.ok(
      ofAlert.some(({ exp_alerts = [] }) => exp_alerts.length === 0),
      alert,
    )
  }
})
