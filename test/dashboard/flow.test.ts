import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import {
  assertNoComplaints,
  type Dashboard,
  goTo,
  type OpenPage,
  startDashboard,
} from '../support/dashboard.ts'
import { waitFor } from '../support/wait-for.ts'

const PASSWORD = 'correct horse battery'

let dashboard: Dashboard
let partner: Partner
/** Ada's browser, from the first test to the last, and her token for what others do meanwhile. */
let ada: OpenPage
let token: string

before(async () => {
  dashboard = await startDashboard()
  partner = await startPartner()
})

after(async () => {
  partner?.stop()
  await dashboard?.stop()
})

test('a newcomer creates an account, and sees an empty queue that says what to do', async () => {
  ada = await dashboard.open()
  await ada.page.getByRole('link', { name: 'Create one' }).click()
  await signUp(ada.page, 'ada')
  await ada.page.getByText('Live', { exact: true }).waitFor()
  await ada.page.getByText('No jobs yet').waitFor()
  const { body } = await dashboard.edge.request('POST', '/auth/login', {
    json: { username: 'ada', password: PASSWORD },
  })
  token = body.access_token
})

test('a job is predicted while it is typed, submitted once, and seen to complete live with its log', async () => {
  const { page } = ada
  await page.getByRole('link', { name: 'Submit a job' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('count')
  await dialog.getByLabel('Type').selectOption('shell')
  await dialog.getByLabel('Payload').fill(JSON.stringify(script(talkTo(partner.url))))
  await dialog
    .getByRole('region', { name: 'Prediction' })
    .getByText(/\d (ms|s|min)/)
    .first()
    .waitFor()
  await dialog.getByRole('button', { name: 'Submit' }).click()
  await page.getByRole('heading', { level: 1, name: 'count' }).waitFor()
  const log = page.getByRole('region', { name: 'Lines of the log' })
  // It runs until it is answered; nothing is reloaded between.
  await log.getByText('asking', { exact: true }).waitFor()
  await statusOf(page, 'running').waitFor()
  partner.answer('forty-two')
  await log.getByText('heard forty-two', { exact: true }).waitFor()
  await statusOf(page, 'completed').waitFor()
  const { body } = await dashboard.edge.request('GET', '/jobs', { token })
  assert.equal(body.items.length, 1)
})

test('a running job is cancelled, and the list follows', async () => {
  const { page } = ada
  const id = await submit({ name: 'endless', type: 'shell', payload: script('setInterval(() => {}, 1e6)') })
  await goTo(page, '#/jobs', 'Jobs')
  await page.getByRole('link', { name: 'endless' }).click()
  await statusOf(page, 'running').waitFor()
  await page.getByRole('button', { name: 'Cancel', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click()
  await statusOf(page, 'cancelled').waitFor()
  assert.equal((await dashboard.edge.request('GET', `/jobs/${id}`, { token })).body.status, 'cancelled')
})

test('dead letters appear by themselves, by their error, and are replayed', async () => {
  const { page } = ada
  await goTo(page, '#/dead-letters', 'Dead letters')
  await page.getByText(/No dead letters/).waitFor()
  for (const name of ['import', 'export']) {
    await submit({ name, type: 'shell', payload: script('process.exit(3)'), retry: { max_attempts: 1 } })
  }
  await page
    .getByRole('button', { name: /^Replay/ })
    .first()
    .click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: /^Replay/ }).click()
  await page.getByText(/back in the queue/).waitFor()
  const { body } = await dashboard.edge.request('GET', '/jobs?name=import', { token })
  assert.equal(body.items.length, 1)
})

test('somebody else sees nothing of it, until they are invited and join', async () => {
  const grace = await dashboard.open('/#/sign-up')
  await signUp(grace.page, 'grace')
  await goTo(grace.page, '#/jobs', 'Jobs')
  await grace.page.getByText('No jobs yet').waitFor()
  const { body } = await dashboard.edge.request('GET', '/jobs', { token })
  await goTo(grace.page, `#/jobs/${body.items[0].id}`, 'No such job')

  await goTo(ada.page, '#/organisation', 'Organisation')
  await ada.page
    .getByRole('button', { name: /^Invite/ })
    .first()
    .click()
  const dialog = ada.page.getByRole('dialog')
  await dialog.getByLabel('Username').fill('grace')
  await dialog.getByRole('button', { name: /^Invite/ }).click()
  await ada.page.getByText('grace').first().waitFor()

  await grace.page.reload()
  await grace.page.getByRole('button', { name: 'Join' }).click()
  await goTo(grace.page, '#/jobs', 'Jobs')
  await grace.page.getByRole('link', { name: 'endless' }).waitFor()
  // Signed in again, she goes on where she was, in the organisation that she has chosen.
  await grace.page.getByRole('button', { name: 'Sign out' }).click()
  await grace.page.getByLabel('Username').fill('grace')
  await grace.page.getByLabel('Password').fill(PASSWORD)
  await grace.page.getByRole('button', { name: 'Sign in' }).click()
  await grace.page.getByRole('link', { name: 'endless' }).waitFor()
  assert.equal(await grace.page.getByRole('link', { name: 'Audit' }).count(), 0, 'a user has no audit log')
  assert.deepEqual(
    // The jobs may have been asked for just before she signed out.
    grace.complaints.filter((text) => !text.startsWith('404 /jobs/') && text !== '401 /jobs'),
    [],
    'but that the job does not exist for her',
  )
})

test('an organisation is exported and deleted, and then the account', async () => {
  const { page, complaints } = await dashboard.open('/#/sign-up')
  await signUp(page, 'linus')
  await goTo(page, '#/organisation', 'Organisation')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export data' }).click(),
  ])
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
  assert.equal(JSON.parse(lines.at(-1) ?? '').type, 'end')

  const id = await page.locator('.org-about code').innerText()
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Delete organisation' }).click()
  await dialog.getByLabel('Type the name').fill('Linus')
  await dialog.getByLabel('Your password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Delete organisation' }).click()
  await dialog.getByText('must be the name of the organisation').waitFor()
  await dialog.getByLabel('Type the name').fill('linus')
  await dialog.getByRole('button', { name: 'Delete organisation' }).click()
  await page.getByText('linus was deleted').waitFor()
  await waitFor('the next organisation', async () => {
    return (await page.locator('.org-about code').innerText()) !== id
  })

  await goTo(page, '#/account', 'Account')
  await page.getByRole('button', { name: 'Delete account' }).click()
  await dialog.getByText('You are the only member').waitFor()
  await dialog.getByLabel('Your password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Delete account' }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  assert.deepEqual(
    complaints.filter((text) => text !== '422 /orgs/me'),
    [],
    'except for the mistyped name',
  )
})

test('signing out ends it, in this tab and for good', async () => {
  const { page } = ada
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  assertNoComplaints(ada)
})

/** Asks, and says what it has heard. */
const talkTo = (url: string): string =>
  `console.log('asking'); fetch('${url}').then((r) => r.text()).then((t) => console.log('heard ' + t))`

/** A shell job that runs a script with this very Node. */
const script = (text: string) => ({ command: process.execPath, args: ['-e', text] })

const signUp = async (page: Page, username: string): Promise<void> => {
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

const statusOf = (page: Page, status: string) =>
  page.locator('main header').getByText(status, { exact: true }).first()

const submit = async (json: object): Promise<string> => {
  const { status, body, text } = await dashboard.edge.request('POST', '/jobs', { json, token })
  assert.equal(status, 201, text)
  return body.id
}

type Partner = { url: string; answer(text: string): void; stop(): void }

/** A server that answers when it is told to. */
const startPartner = async (): Promise<Partner> => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<string>()
  const server = createServer((_, response) => void answered.then((text) => response.end(text)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { url, answer, stop: () => server.close() }
}
