import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { buildDashboard } from '../../functions/dashboard/build.ts'
import { fromElsewhere, registerUser, type TestAccount } from '../support/accounts.ts'
import { findLowContrast, findViolations } from '../support/axe.ts'
import {
  assertNoComplaints,
  type Dashboard,
  goTo,
  type OpenPage,
  signIn,
  startDashboard,
} from '../support/dashboard.ts'
import { waitFor } from '../support/wait-for.ts'

const FIRST_LOAD_BYTES = 60_000
const ALL_BYTES = 115_000

let dashboard: Dashboard
let account: TestAccount
let open: OpenPage
let page: Page
/** What was loaded until the overview was there, by the address. */
const loaded = new Map<string, number>()
let views: [hash: string, heading: string][]

before(async () => {
  dashboard = await startDashboard()
  account = await registerUser(dashboard.edge)
  views = await fillViews()
  open = await dashboard.open('/docs')
  page = open.page
  page.on('response', async (response) => {
    const { pathname } = new URL(response.url())
    if (pathname !== '/' && !pathname.startsWith('/dashboard/')) return
    loaded.set(pathname, gzipSync(await response.body(), { level: 9 }).length)
  })
  await page.goto(dashboard.edge.url)
  await signIn(page, account)
  await page.locator('.plot canvas').first().waitFor()
})

after(() => dashboard?.stop())

test('the first load is at most 60 kB and everything at most 115 kB, compressed', async () => {
  const first = [...loaded.values()].reduce((sum, bytes) => sum + bytes, 0)
  assert.ok(loaded.size >= 4, [...loaded.keys()].join())
  assert.ok(first <= FIRST_LOAD_BYTES, `${first} bytes`)
  const all = (await buildDashboard()).reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)
  assert.ok(all <= ALL_BYTES, `${all} bytes`)
})

test('every view keeps to WCAG 2.2 AA in light and dark, fits a phone, and has the numbers of its charts in tables', async () => {
  const found: string[] = []
  for (const [hash, heading] of views) {
    await goTo(page, hash, heading)
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    const told = (what: string[]): void => void found.push(...what.map((one) => `${hash} ${one}`))
    told(await findViolations(page))
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
    told(await findLowContrast(page))
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
    await page.setViewportSize({ width: 390, height: 844 })
    // Charts take their new width with the next frame.
    const width = await page.evaluate<number>(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(document.documentElement.scrollWidth))))',
    )
    if (width > 390) told([`is ${width} px wide on a phone`])
    await page.setViewportSize({ width: 1360, height: 900 })
    await lookBehindCharts(page)
  }
  assert.deepEqual(found, [])
})

const lookBehindCharts = async (page: Page): Promise<void> => {
  for (const chart of await page.locator('section.chart').all()) {
    await chart.getByRole('button', { name: /as a table$/ }).click()
    await chart.getByRole('table').waitFor()
    await chart.getByRole('button', { name: /as a chart$/ }).click()
  }
}

test('the menu and a dialog work without a mouse', async () => {
  await goTo(page, '#/', 'Overview')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  const skip = page.getByRole('button', { name: 'Skip to content' })
  await skip.focus()
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate('document.activeElement.id'), 'main')
  const submit = page.getByRole('link', { name: 'Submit a job' }).first()
  await submit.focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').waitFor()
  assert.equal(await page.locator('dialog:focus-within').count(), 1)
  assert.deepEqual(await findViolations(page), [])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
})

test('sign-ins are listed with their device and can be ended one by one or all but the current one', async () => {
  const { edge } = dashboard
  const agents = ['curl/8.5.0', 'Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0']
  const tokens: string[] = []
  for (const agent of agents) {
    const { username, password } = account
    const headers = { ...fromElsewhere(), 'user-agent': agent }
    const { body } = await edge.request('POST', '/auth/login', { json: { username, password }, headers })
    tokens.push(body.access_token)
  }
  const statuses = async () =>
    Promise.all(tokens.map(async (token) => (await edge.request('GET', '/orgs/me', { token })).status))
  await goTo(page, '#/account', 'Account')
  const table = page.getByRole('region', { name: 'Your sign-ins' })
  await table.getByRole('row', { name: /Chrome on Linux current/ }).waitFor()
  await table.getByRole('button', { name: 'End sign-in: Firefox on Windows' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
  await table.getByRole('row', { name: /Firefox/ }).waitFor({ state: 'detached' })
  assert.deepEqual(await statuses(), [200, 401])
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out', exact: true }).click()
  await table.getByRole('row', { name: /curl/ }).waitFor({ state: 'detached' })
  assert.deepEqual(await statuses(), [401, 401])
  assert.equal(await table.getByRole('row').count(), 2, 'the header and the current one')
})

test('a visitor who cannot register sees how to get an account', async () => {
  for (const [registration, words] of [
    ['invite', 'You need an invitation'],
    ['closed', 'Only the operator'],
  ] as const) {
    const { page } = await dashboard.open('/docs')
    await page.route('**/auth/registration', (route) => route.fulfill({ json: { registration } }))
    await page.goto(`${dashboard.edge.url}/#/sign-up`)
    await page.getByText(words).waitFor()
    assert.equal(await page.getByLabel('Username').count(), 0)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByLabel('Username').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Create one' }).count(), 0)
    assert.deepEqual(await findViolations(page), [])
    await page.context().close()
  }
})

test('nothing of it breaks the policy of the page', () => assertNoComplaints(open))

/** Something for each view to show; answers their addresses and headings. */
const fillViews = async (): Promise<[string, string][]> => {
  const { edge } = dashboard
  const { token } = account
  const post = async (path: string, json: unknown) => {
    const { status, body, text } = await edge.request('POST', path, { json, token })
    assert.ok(status < 300, text)
    return body
  }
  const job = (name: string, text: string) => ({
    ...{ name, type: 'shell', payload: { command: process.execPath, args: ['-e', text] } },
    retry: { max_attempts: 1 },
  })
  const { jobs } = await post('/jobs/batch', {
    jobs: [
      { ref: 'first', ...job('extract', 'console.log(1)'), tags: ['eu'], priority: 'high' },
      { ref: 'second', ...job('load', 'console.error(2)'), depends_on: ['ref:first'] },
      { ...job('fail', 'process.exit(1)'), priority: 'critical' },
      { ...job('later', ''), run_at: '2099-01-01T00:00:00Z' },
      { ...job('wait', 'setInterval(() => {}, 1e6)') },
    ],
  })
  const schedule = { name: 'nightly', cron: '30 2 * * *', timezone: 'Europe/Berlin', job: job('report', '') }
  await post('/schedules', schedule)
  const source = await post('/webhooks/sources', {
    name: 'pushes',
    scheme: 'hmac',
    template: job('build', ''),
  })
  await post(`/orgs/${account.orgId}/invite`, { role: 'user' })
  await post('/auth/keys', { name: 'ci', scopes: ['jobs:read'] })
  await waitFor('the failing job to fail', async () => {
    const { body } = await edge.request('GET', '/dlq', { token })
    return body.items.length > 0
  })
  return [
    ['#/', 'Overview'],
    ['#/jobs', 'Jobs'],
    [`#/jobs/${jobs[1].id}`, 'load'],
    [`#/jobs/${jobs[2].id}`, 'fail'],
    [`#/jobs/${jobs[4].id}`, 'wait'],
    ['#/dead-letters', 'Dead letters'],
    ['#/schedules', 'Schedules'],
    ['#/webhooks', 'Webhooks'],
    [`#/webhooks/${source.id}`, 'pushes'],
    ['#/workers', 'Workers'],
    ['#/model', 'Model'],
    ['#/organisation', 'Organisation'],
    ['#/keys', 'API keys'],
    ['#/audit', 'Audit'],
    ['#/account', 'Account'],
  ]
}
