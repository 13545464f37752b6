import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { waitFor } from '../support/wait-for.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

let database: TestDatabase
let edge: Edge
let worker: TestWorker
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  worker = await startWorker(database.url)
})
after(async () => {
  await worker.stop()
  await edge.stop()
  await database.drop()
})

/** `npm run demo`, without npm, on a system that tells of no home. */
const spawnDemo = (args: string[], env: Record<string, string> = {}) => {
  const child = spawn(process.execPath, ['worker-runtime/demo/main.ts', ...args], {
    env: { ...process.env, SMARTQUEUE_HOME: '/nowhere', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]).then(
    ([out, err, [code]]) => ({ code: code as number | null, out, err }),
  )
  return { child, ended }
}

const runDemo = (args: string[], env?: Record<string, string>) => spawnDemo(args, env).ended

test('a short run has tenants, failures, pipelines and deadlines, and sums them up', async () => {
  const { code, out, err } = await runDemo(['--url', edge.url, '--seconds', '4', '--json'])
  assert.equal(code, 0, err)
  const summary = JSON.parse(out)
  assert.equal(summary.ended, 'done')
  assert.equal(summary.refused, 0, summary.last_refusal)
  assert.deepEqual(
    summary.tenants.map(({ name }: { name: string }) => name),
    ['Northwind-Analytics', 'Acme-Payments', 'Zephyr-Media'],
  )
  for (const { submitted, completed } of summary.tenants) assert.ok(submitted > 10 && completed > 10)
  const { completed, failed, cancelled, open } = summary
  assert.equal(completed + failed + cancelled + open, summary.submitted)
  assert.ok(summary.pipelines.submitted >= 2)
  assert.equal(summary.pipelines.completed, summary.pipelines.submitted)
  assert.ok(summary.deadlines.met > 5 && summary.deadlines.at_risk > 0)
  assert.deepEqual(summary.deliveries, { accepted: 3, filtered: 1, quarantined: 1 })
  assert.ok(summary.replayed > 0 && cancelled > 0)
  const codes = summary.dead_letters.map(({ code }: { code: string }) => code)
  assert.deepEqual(codes.sort(), ['http_status', 'http_status', 'timeout'])
  const { prediction, eta } = summary
  assert.ok(prediction.early.off_by > 1 && prediction.late.p90_coverage > 0)
  assert.ok(eta.early.jobs + eta.late.jobs > 10)
  assert.match(err, /submitted · .* completed/, 'progress is shown beside')
})

test('the tenants can be signed in to, and have what a company has', async () => {
  const signIn = async (username: string): Promise<string> => {
    const json = { username, password: 'watch-it-learn' }
    return (await edge.request('POST', '/auth/login', { json })).body.access_token
  }
  const [northwind, acme] = [await signIn('Northwind-Analytics'), await signIn('Acme-Payments')]
  const items = async (token: string, path: string) => (await edge.request('GET', path, { token })).body.items
  assert.equal((await items(northwind, '/orgs/me/invitations')).length, 1)
  const [schedule] = await items(northwind, '/schedules')
  assert.deepEqual([schedule.cron, schedule.paused], ['* * * * *', true])
  const members = await items(acme, '/orgs/me/members')
  const roles = members.map(({ role }: { role: string }) => role)
  assert.deepEqual(roles.sort(), ['org_admin', 'user'])
  const waiting = (await items(northwind, '/jobs?status=pending')).length
  assert.equal(waiting, 2, 'jobs for later')
})

test('run again and ended with Ctrl-C, it signs in, sums up what there is, and leaves no calls behind', async () => {
  const { child, ended } = spawnDemo(['--url', edge.url, '--seconds', '60'])
  await waitFor('jobs of the second run', async () => {
    const [row] = await database.sql(`select count(distinct prefix)::int as keys from api_keys`)
    const [jobs] = await database.sql(
      `select from jobs where created_at > (select max(created_at) from api_keys) and name = 'charge-card' limit 1`,
    )
    return (row as { keys: number }).keys === 6 && jobs
  })
  child.kill('SIGINT')
  const { code, out } = await ended
  assert.equal(code, 0)
  assert.match(out, /^Ended early after /)
  assert.match(out, /What to look at: http/)
  assert.match(out, /#\/dead-letters/)
  const open = await database.sql(
    `select name from jobs where type = 'http' and not exists (select from finished_jobs where id = jobs.id)`,
  )
  assert.deepEqual(open, [])
})

test('where nothing runs, it says what to run', async () => {
  const { code, out, err } = await runDemo([], { PORT: String(await freePort()) })
  assert.equal(code, 1)
  assert.equal(out, '')
  assert.match(err, /^SmartQueue does not answer at http:.*Run `npm run dev` in another terminal/)
})

test('its accounts are made on this machine only', async () => {
  const { code, err } = await runDemo(['--url', 'http://queue.example.com'])
  assert.equal(code, 1)
  assert.match(err, /--url must be of this machine/)
})
