import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { describeApi } from '../../functions/api-docs/document.ts'
import { createApp } from '../../functions/app.ts'
import { SETTINGS } from '../../worker-runtime/config.ts'
import { createDatabase, type Database } from '../../worker-runtime/database.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { alertsOf, readRuleGroups, readText } from '../support/monitoring.ts'

const RUNBOOK = 'https://github.com/smartqueue/smartqueue/blob/main/docs/runbook.md'

const runbook = readText('docs/runbook.md')
const alerts = alertsOf(readRuleGroups())

const headings = [...runbook.matchAll(/^#{2,3} (.+)$/gm)].map(([, heading = '']) => heading)
/** As GitHub makes it. */
const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(' ', '-')

let database: TestDatabase
before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())

test('every alert leads to its entry, and every entry is about an alert', () => {
  for (const { alert, annotations } of alerts)
    assert.equal(annotations?.runbook_url, `${RUNBOOK}#${anchorOf(alert)}`)
  const entries = headings.filter((heading) => heading.startsWith('SmartQueue'))
  assert.deepEqual(entries.toSorted(), [...new Set(alerts.map(({ alert }) => alert))].sort())
})

test('every entry says what it means, what users notice, how to look, what to do and when to escalate', () => {
  const entries = runbook.split(/^## /m).filter((part) => part.startsWith('SmartQueue'))
  const parts = ['**Means.**', '**Users notice.**', '**Look.**', '**Do.**', '**Escalate**']
  for (const entry of entries) {
    const places = parts.map((part) => entry.indexOf(part))
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
      entry.slice(0, 40),
    )
    assert.ok(
      places.every((place) => place > 0),
      entry.slice(0, 40),
    )
  }
})

test('the list at the beginning has every alert with its severities', () => {
  for (const alert of new Set(alerts.map((one) => one.alert))) {
    const own = alerts.filter((one) => one.alert === alert).map(({ labels }) => labels?.severity)
    const severities = ['warning', 'critical'].filter((one) => own.includes(one)).join(', ')
    assert.ok(runbook.includes(`| [${alert}](#${anchorOf(alert)}) | ${severities} |`), alert)
  }
})

test('links within the runbook lead somewhere', () => {
  const anchors = new Set(headings.map(anchorOf))
  for (const [, anchor = ''] of runbook.matchAll(/\]\(#([^)]+)\)/g)) assert.ok(anchors.has(anchor), anchor)
})

type Paths = Record<string, Record<string, unknown>>
const { paths } = describeApi(createApp()) as { paths: Paths }
/** The controller in the cluster serves it, too. */
const isKnown = (method: string, path: string): boolean =>
  paths[path.replace(/<\w+>/, '{id}')]?.[method] !== undefined

/** What a command does with its request. */
const methodOf = (command: string): string =>
  (/-X (\w+)/.exec(command)?.[1] ?? (/ -d /.test(command) ? 'POST' : 'GET')).toLowerCase()

test('requests in the runbook go to routes that there are', () => {
  const commands = [...runbook.matchAll(/^.*curl (?:.*\\\n)*.*$/gm)].map(([command]) => command)
  const sent = commands.flatMap((command) =>
    [...command.matchAll(/\$SMARTQUEUE(\/[^"?\s]+)/g)].map(
      ([, path = '']) => [methodOf(command), path] as const,
    ),
  )
  const named = [...runbook.matchAll(/`(GET|POST|PATCH) (\/[^`?\s]+)/g)].map(
    ([, method = '', path = '']) => [method.toLowerCase(), path] as const,
  )
  assert.ok(sent.length > 20 && named.length > 5)
  for (const [method, path] of [...sent, ...named]) assert.ok(isKnown(method, path), `${method} ${path}`)
})

test('settings and commands in the runbook are those that there are', () => {
  for (const [name] of runbook.matchAll(/\bSMARTQUEUE_[A-Z_]+/g)) assert.ok(SETTINGS.includes(name), name)
  const { scripts } = JSON.parse(readText('package.json'))
  for (const [, script = ''] of runbook.matchAll(/npm run ([\w:-]+)/g)) assert.ok(script in scripts, script)
})

test('labels in the runbook are those of the rules', () => {
  const told = new Set(alerts.flatMap(({ labels }) => labels?.because ?? []))
  const named = new Set([...runbook.matchAll(/`because: ([\w-]+)`/g)].map(([, because = '']) => because))
  assert.deepEqual([...named].sort(), [...told].sort())
})

test('statements in the runbook run, with the login that it names', async () => {
  const workers: Database = createDatabase({
    url: asLogin(database.url, 'workers'),
    applicationName: 'runbook',
    maxConnections: 1,
    onError: () => {},
  })
  const blocks = [...runbook.matchAll(/^```sql\n([\s\S]*?)^```/gm)].map(([, block = '']) => block)
  assert.ok(blocks.length >= 5)
  const statements = blocks.flatMap((block) => block.split(/;\s*$/m)).filter((one) => one.trim() !== '')
  try {
    for (const [number, statement] of statements.entries())
      await workers.run({ name: `runbook-${number}`, text: statement, values: [] })
  } finally {
    await workers.close()
  }
})
