import type { Page } from 'playwright-core'

/** A picture of the dashboard: its file, the address of the view, and what must be seen before it is taken. */
export type Shot = {
  name: string
  hash: string
  /** Brings the view into the state that is shown. */
  prepare?: (page: Page) => Promise<void>
  /** Who looks: each tenant of the demo has something else to show. Nobody: before they sign in. */
  tenant: 'Acme-Payments' | 'Northwind-Analytics' | 'Zephyr-Media' | null
  /** Of a phone instead of a desk. */
  phone?: true
}

const ACME = { tenant: 'Acme-Payments' } as const
const NORTHWIND = { tenant: 'Northwind-Analytics' } as const
const ZEPHYR = { tenant: 'Zephyr-Media' } as const

export const SHOTS: readonly Shot[] = [
  { name: 'sign-in', hash: '#/sign-in', tenant: null },
  { name: 'overview', hash: '#/', ...ACME },
  { name: 'jobs', hash: '#/jobs', ...ACME },
  { name: 'submit', hash: '#/jobs?submit=new', prepare: fillSubmission, ...ACME },
  { name: 'job', hash: '#/jobs?name=package-episode', prepare: openFirstJob, ...ZEPHYR },
  { name: 'dead-letters', hash: '#/dead-letters', ...ACME },
  { name: 'schedules', hash: '#/schedules', ...NORTHWIND },
  { name: 'webhooks', hash: '#/webhooks', ...ZEPHYR },
  { name: 'deliveries', hash: '#/webhooks', prepare: openFirstSource, ...ZEPHYR },
  { name: 'workers', hash: '#/workers', ...ACME },
  { name: 'model', hash: '#/model', ...ACME },
  { name: 'organisation', hash: '#/organisation', ...ACME },
  { name: 'keys', hash: '#/keys', ...ACME },
  { name: 'audit', hash: '#/audit', ...ACME },
  { name: 'phone-overview', hash: '#/', phone: true, ...ACME },
  { name: 'phone-jobs', hash: '#/jobs', phone: true, ...ACME },
]

async function fillSubmission(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('charge-card')
  await dialog.getByLabel('Type', { exact: true }).selectOption('http')
  await dialog.getByLabel('Priority').selectOption('critical')
  await dialog.locator('.outcome-runtime').waitFor()
}

/** One that waits for others: its graph has something to show. */
async function openFirstJob(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'package-episode' }).first().click()
  await page.getByRole('heading', { level: 2, name: 'Dependencies' }).waitFor()
}

async function openFirstSource(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Pushes to main' }).first().click()
  await page.getByRole('heading', { level: 1, name: 'Pushes to main' }).waitFor()
}
