import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

let database: TestDatabase
let edge: Edge
let worker: TestWorker
let token: string
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
  assert.ok(summary.deadlines.met > 5 && summary.deadlines.missed > 0)
  assert.deepEqual(summary.deliveries, { accepted: 3, filtered: 1, quarantined: 1 })
  assert.ok(summary.replayed > 0 && cancelled > 0)
  const codes = summary.dead_letters.map(({ code }: { code: string }) => code)
  assert.deepEqual(codes.sort(), ['http_status', 'http_status', 'timeout'])
  const { prediction, eta } = summary
  // On a busy machine nothing may have ended in the first ten seconds.
  const { off_by, p90_coverage } = prediction.early.off_by === null ? prediction.late : prediction.early
  assert.ok(off_by > 1 && p90_coverage > 0)
  assert.ok(eta.early.jobs + eta.late.jobs > 0)
  assert.match(err, /submitted · .* completed/, 'progress is shown beside')
})

test('the tenants can be signed in to, and have what a company has', async () => {
  const ofOrg = (text: string, org: string) =>
    database.sql(`select t.* from ${text} t join orgs o on o.id = t.org_id where o.name = $1`, [org])
  assert.equal((await ofOrg('invitations', 'Northwind-Analytics')).length, 1)
  const [schedule] = await ofOrg('schedules', 'Northwind-Analytics')
  assert.deepEqual([schedule?.cron, schedule?.next_at], ['* * * * *', null], 'paused')
  const roles = (await ofOrg('memberships', 'Acme-Payments')).map(({ role }) => role)
  assert.deepEqual(roles.sort(), ['org_admin', 'user'])
  assert.equal((await ofOrg('waiting_jobs', 'Northwind-Analytics')).length, 2, 'jobs for later')
  const json = { username: 'Zephyr-Media', password: 'watch-it-learn' }
  token = (await edge.request('POST', '/auth/login', { json })).body.access_token
  const { body } = await edge.request('GET', '/orgs/me', { token })
  assert.equal(body.name, 'Zephyr-Media', 'who signs in is where the jobs are')
})

test('run again and ended with Ctrl-C, it signs in, sums up what there is, and leaves no calls behind', async () => {
  const later = new Date(Date.now() + 3_600_000).toISOString()
  const call = { name: 'call', type: 'http', payload: { url: 'http://127.0.0.1:9/' } }
  const json = { ...call, tags: ['demo'], run_at: later }
  const { id } = (await edge.request('POST', '/jobs', { token, json })).body
  const { child, ended } = spawnDemo(['--url', edge.url, '--seconds', '60', '--rate', '10'])
  child.stderr.on('data', (chunk) => {
    if (String(chunk).includes('submitted')) child.kill('SIGINT')
  })
  const { code, out, err } = await ended
  assert.equal(code, 0, err)
  assert.match(out, /^Ended early after /)
  assert.match(out, /What to look at: http/)
  assert.match(out, /#\/dead-letters/)
  assert.equal((await edge.request('GET', `/jobs/${id}`, { token })).body.status, 'cancelled')
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
