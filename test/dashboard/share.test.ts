import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { findViolations } from '../support/axe.ts'
import { assertNoComplaints, type Dashboard, signIn, startDashboard } from '../support/dashboard.ts'
import { claimTypes } from '../support/job-in-state.ts'
import { completed, end, newJob, seedJobs } from '../support/jobs.ts'

let dashboard: Dashboard
let ada: TestAccount
let bob: TestAccount
before(async () => {
  dashboard = await startDashboard({ withWorker: false })
  const { edge, database } = dashboard
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
  for (const [account, ms] of [
    [ada, 31_000],
    [bob, 19_000],
  ] as const) {
    await seedJobs(database.run, account, [newJob()])
    const [held] = await claimTypes(database.run, ['test'])
    assert.ok(held)
    await end(database.run, completed(held, null, ms))
    await seedJobs(
      database.run,
      account,
      Array.from({ length: 7 }, () => newJob({ type: 'waits' })),
    )
  }
  await database.sql('update orgs set name = $2 where id = $1', [bob.orgId, 'Bob and sons'])
})
after(() => dashboard?.stop())

const openOverview = async (account: TestAccount) => {
  const open = await dashboard.open('/')
  await signIn(open.page, account)
  const panel = open.page.getByRole('region', { name: 'Share of the workers' })
  await panel.getByText('Used, last minute').waitFor()
  return { ...open, panel }
}

test('the overview shows the share and its use, and nothing of other organisations', async () => {
  const open = await openOverview(ada)
  const { page, panel } = open
  const text = await panel.innerText()
  for (const part of [
    /Used, last minute\s+62 %/,
    /Share, weight 1\s+50 %/,
    /7 jobs ready, 7\.0 s of predicted work; 0 running/,
  ])
    assert.match(text, part)
  assert.equal(await page.getByRole('heading', { name: 'Organisations' }).count(), 0)
  assert.doesNotMatch(await page.locator('main').innerText(), /Bob/)
  assertNoComplaints(open)
})

test('an admin sees the organisations, highest usage first', async () => {
  await dashboard.database.sql('update users set is_admin = true where id = $1', [ada.userId])
  const open = await openOverview(ada)
  const { page } = open
  const table = page.getByRole('region', { name: 'Organisations' }).last()
  await table.getByRole('row', { name: /Bob and sons/ }).waitFor()
  const rows = await table.locator('tbody tr').allInnerTexts()
  assert.match(rows[0] ?? '', /62 %\s+50 %\s+1\s+7\s+7\.0 s\s+0/)
  assert.match(rows[1] ?? '', /^Bob and sons\s+38 %\s+50 %/)
  assert.deepEqual(await findViolations(page), [])
  assertNoComplaints(open)
})
