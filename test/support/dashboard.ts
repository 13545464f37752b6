import assert from 'node:assert/strict'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import type { TestAccount } from './accounts.ts'
import { launchBrowser } from './browser.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type Edge, startEdge } from './edge.ts'
import { startWorker } from './worker.ts'

export type Dashboard = {
  readonly edge: Edge
  readonly database: TestDatabase
  /** A browser of somebody's own: nothing is shared with other pages. */
  open(path?: string, options?: BrowserContextOptions): Promise<OpenPage>
  stop(): Promise<void>
}

export type OpenPage = {
  readonly page: Page
  /** What the browser complained of: errors of scripts, refused resources, breaches of the policy. */
  readonly complaints: string[]
}

/**
 * The dashboard as it is served, with a worker behind it whose shell jobs may run this very Node; or without, and http jobs
 * that wait.
 */
export const startDashboard = async ({ withWorker = true } = {}): Promise<Dashboard> => {
  const database = await createTestDatabase()
  const worker = withWorker
    ? await startWorker(database.url, {
        SMARTQUEUE_SHELL_ALLOW: process.execPath,
        SMARTQUEUE_DRAIN_SECONDS: '1',
      })
    : undefined
  if (!worker) await database.run(registerJobTypes([{ type: 'http', payload_schema: {} }]))
  const edge = await startEdge({ databaseUrl: database.url })
  const browser = await launchBrowser()
  return {
    edge,
    database,
    open: (path = '/', options = {}) => openPage(browser, new URL(path, edge.url), options),
    stop: async () => {
      await browser.close()
      await worker?.stop()
      await edge.stop()
      await database.drop()
    },
  }
}

const openPage = async (browser: Browser, url: URL, options: BrowserContextOptions): Promise<OpenPage> => {
  const context = await browser.newContext({
    locale: 'en-GB',
    viewport: { width: 1360, height: 900 },
    // Each from a network of its own: sign-ins are limited for each.
    extraHTTPHeaders: { 'cf-connecting-ip': `10.1.${Math.floor(++opened / 256)}.${opened % 256}` },
    ...options,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    // What was refused is told with its address, below.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load'))
      complaints.push(message.text())
  })
  page.on('response', (response) => {
    const told = `${response.status()} ${new URL(response.url()).pathname}`
    if (response.status() >= 400 && !EXPECTED.includes(told)) complaints.push(told)
  })
  await page.goto(url.href)
  return { page, complaints }
}

let opened = 0

/** That nobody is signed in, or that there is no secret yet, is found out by asking. */
const EXPECTED = ['401 /auth/refresh', '404 /callbacks/secret']

export const signIn = async (page: Page, { username, password }: TestAccount): Promise<void> => {
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

/** Goes to a view by its address, as a link would. */
export const goTo = async (page: Page, hash: string, heading: string | RegExp): Promise<void> => {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
}

export const assertNoComplaints = ({ complaints }: OpenPage): void => assert.deepEqual(complaints, [])
