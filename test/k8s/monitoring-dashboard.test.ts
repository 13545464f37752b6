import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMPONENT, createReadings, readText } from '../support/monitoring.ts'

type Datasource = { type: string; uid: string }
type Grid = { x: number; y: number; w: number; h: number }
type Panel = {
  id: number
  type: string
  title: string
  description?: string
  datasource?: Datasource
  gridPos: Grid
  fieldConfig?: { defaults: { unit?: string; thresholds?: { steps: { value: number | null }[] } } }
  targets?: { refId: string; expr: string; datasource: Datasource }[]
}
type Variable = { name: string; type: string; query: string | { query: string }; datasource?: Datasource }

const text = readText(`${COMPONENT}/dashboard.json`)
const dashboard = JSON.parse(text)
const panels: Panel[] = dashboard.panels
const charts = panels.filter(({ type }) => type !== 'row')
const variables: Variable[] = dashboard.templating.list
const annotations: { expr?: string; datasource: Datasource }[] = dashboard.annotations.list

/** Grafana's own, and those of the dashboard, with something that they may stand for. */
const filledIn = (expression: string): string =>
  expression.replaceAll('$__rate_interval', '5m').replaceAll(/\$\{?\w+\}?/g, 'filled-in')

const expressions = [
  ...charts.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...annotations.flatMap(({ expr }) => expr ?? []),
]

test('every expression parses, and reads what is served: counters by how much they grow, gauges as they are', () => {
  const check = createReadings()
  assert.ok(expressions.length > 50)
  for (const expr of expressions) check(filledIn(expr))
})

test('a quantile is taken of sums by le', () => {
  for (const expr of expressions.filter((one) => one.includes('histogram_quantile')))
    assert.match(expr, /histogram_quantile\(0\.\d+, sum by \(le(, \w+)?\) \(rate\(\w+_bucket/)
})

test('the dashboard uses the variables that it defines, and all of them', () => {
  const defined = variables.map(({ name }) => name)
  const used = new Set([...text.matchAll(/\$\{?(?!__)(\w+)\}?/g)].map(([, name]) => name))
  assert.deepEqual([...used].sort(), defined.sort())
})

test('every panel, query and variable asks the data source that was chosen', () => {
  const asked = [
    ...charts.flatMap(({ datasource, targets = [] }) => [
      datasource,
      ...targets.map((target) => target.datasource),
    ]),
    ...variables.filter(({ type }) => type === 'query').map(({ datasource }) => datasource),
    ...annotations.filter(({ expr }) => expr).map(({ datasource }) => datasource),
  ]
  const chosen = { type: 'prometheus', uid: '$' + '{datasource}' }
  for (const datasource of asked) assert.deepEqual(datasource, chosen)
})

test('panels do not overlap, and are within the grid', () => {
  const taken = new Map<string, string>()
  for (const { title, gridPos: grid } of panels) {
    assert.ok(grid.x >= 0 && grid.w > 0 && grid.h > 0 && grid.x + grid.w <= 24, title)
    for (let x = grid.x; x < grid.x + grid.w; x++) {
      for (let y = grid.y; y < grid.y + grid.h; y++) {
        assert.equal(taken.get(`${x},${y}`), undefined, `${title} lies upon another`)
        taken.set(`${x},${y}`, title)
      }
    }
  }
})

test('panels have ids of their own, which links can keep', () => {
  const ids = panels.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  // Those of a row begin with its number: a new panel in one does not move those of others.
  let row = 0
  for (const { id, type, title } of panels) {
    if (type === 'row') row = id
    assert.equal(Math.floor(id / 100), row / 100, title)
  }
  assert.equal(dashboard.id, null)
  assert.equal(dashboard.uid, 'smartqueue')
})

test('every panel says what it shows, in which unit, and asks each question under a letter of its own', () => {
  for (const { title, description, fieldConfig, targets = [] } of charts) {
    assert.match(description ?? '', /\.$/, title)
    assert.ok(fieldConfig?.defaults.unit, title)
    const values = (fieldConfig.defaults.thresholds?.steps ?? []).map(({ value }) => value ?? -Infinity)
    assert.deepEqual(
      values,
      values.toSorted((a, b) => a - b),
      title,
    )
    const letters = targets.map(({ refId }) => refId)
    assert.ok(letters.length > 0 && new Set(letters).size === letters.length, title)
  }
})

test('the rows are those that operators look for', () => {
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  assert.deepEqual(rows, ['Overview', 'Latency', 'Scaling', 'Prediction', 'Workers', 'Edge'])
})
