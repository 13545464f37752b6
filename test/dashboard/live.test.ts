import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { type BreakableProxy, startBreakableProxy } from '../support/breakable-proxy.ts'
import { type Dashboard, goTo, signIn, startDashboard } from '../support/dashboard.ts'

let dashboard: Dashboard
let network: BreakableProxy
let account: TestAccount
let page: Page
const asked: string[] = []

before(async () => {
  dashboard = await startDashboard({ withWorker: false })
  network = await startBreakableProxy(dashboard.edge.url)
  account = await registerUser(dashboard.edge)
  page = (await dashboard.open(network.url)).page
  await signIn(page, account)
  await page.getByText('Live', { exact: true }).waitFor()
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
})

after(async () => {
  network?.stop()
  await dashboard?.stop()
})

test('the numbers of the overview follow without a request', async () => {
  const queued = page.locator('.stat', { has: page.getByRole('link', { name: 'Queued' }) })
  await queued.getByText('0', { exact: true }).waitFor()
  await submit('first')
  await queued.getByText('1', { exact: true }).waitFor()
  assert.equal(asked.includes('/analytics/summary'), false)
})

test('changes undone by a database crash are no longer shown', async () => {
  const { database } = dashboard
  const entry = page.locator('.activity li', { has: page.getByRole('link', { name: 'first' }) })
  await submit('second')
  await database.sql(
    `select record_events(array[org_id], array[id], '{running}', '{1}') from jobs where name = 'first'`,
  )
  await entry.getByText('running').waitFor()
  await database.sql(`delete from job_event_groups where states = '{running}'`)
  await database.sql('truncate incarnations')
  await entry.getByText('ready').waitFor()
})

test('a lost connection is shown, heals by itself, and nothing is missed', async () => {
  await goTo(page, '#/jobs', 'Jobs')
  await page.getByRole('link', { name: 'first' }).waitFor()
  await page.evaluate('window.isTheSamePage = true')
  network.break()
  await page.getByText(/Connection lost/).waitFor()
  await page.getByText(/what you see may be old/).waitFor()
  await submit('meanwhile')
  network.mend()
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'meanwhile' }).waitFor()
  await page.getByText(/what you see may be old/).waitFor({ state: 'detached' })
  assert.equal(await page.evaluate('window.isTheSamePage'), true)
})

test('what failed while the connection was lost is tried again by itself', async () => {
  network.break()
  await page.getByText(/Connection lost/).waitFor()
  await goTo(page, '#/dead-letters', 'Dead letters')
  await page.getByText(/The server does not answer/).waitFor()
  network.mend()
  await page.getByText('No dead letters').waitFor()
})

const submit = async (name: string): Promise<void> => {
  const json = { name, type: 'http', payload: { url: 'https://example.com/' } }
  const { status, text } = await dashboard.edge.request('POST', '/jobs', { json, token: account.token })
  assert.equal(status, 201, text)
}
