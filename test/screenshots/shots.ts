import type { Page } from 'playwright-core'

/** A picture of the dashboard: its file, the address of the view, and what must be seen before it is taken. */
export type Shot = {
  name: string
  hash: string
  /** Brings the view into the state that is shown. */
  prepare?: (page: Page) => Promise<void>
  /** Before anybody signs in. */
  signedOut?: true
  /** Of a phone instead of a desk. */
  phone?: true
}

export const SHOTS: readonly Shot[] = [
  { name: 'sign-in', hash: '#/sign-in', signedOut: true },
  { name: 'overview', hash: '#/' },
  { name: 'jobs', hash: '#/jobs' },
  { name: 'submit', hash: '#/jobs?submit=new', prepare: fillSubmission },
  { name: 'job', hash: '#/jobs', prepare: openPipelineJob },
  { name: 'dead-letters', hash: '#/dead-letters' },
  { name: 'schedules', hash: '#/schedules' },
  { name: 'webhooks', hash: '#/webhooks' },
  { name: 'deliveries', hash: '#/webhooks', prepare: openFirstSource },
  { name: 'workers', hash: '#/workers' },
  { name: 'model', hash: '#/model' },
  { name: 'organisation', hash: '#/organisation' },
  { name: 'keys', hash: '#/keys' },
  { name: 'audit', hash: '#/audit' },
  { name: 'phone-overview', hash: '#/', phone: true },
  { name: 'phone-jobs', hash: '#/jobs', phone: true },
]

async function fillSubmission(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('resize-images')
  await dialog
    .getByText(/p50|median|predicted/i)
    .first()
    .waitFor()
}

/** One that waits for others: its graph has something to show. */
async function openPipelineJob(page: Page): Promise<void> {
  await page
    .getByRole('link', { name: /report|notify|train/ })
    .first()
    .click()
  await page.getByRole('heading', { level: 1 }).waitFor()
}

async function openFirstSource(page: Page): Promise<void> {
  await page
    .getByRole('link', { name: /deliver/i })
    .first()
    .click()
}
