import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { readDemoPort } from '../../worker-runtime/local/home.ts'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { createTestDatabase } from '../support/database.ts'
import {
  type LocalRunner,
  spawnRunner,
  startRunner,
  untilAllGone,
  withHome,
} from '../support/local-runner.ts'
import { waitFor } from '../support/wait-for.ts'

const CREDENTIALS = { username: 'ada', password: 'correct horse battery' }

/** The lines below "SmartQueue ready" that can be pasted into a shell. */
const commandsOf = (runner: LocalRunner): string[] =>
  runner
    .output()
    .slice(runner.output().indexOf('SmartQueue ready:'))
    .split('\n')
    .filter((line) => /^ {2}(TOKEN=|curl )/.test(line))

const post = async (url: string, json: unknown, token = ''): Promise<Record<string, string>> => {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(json) })
  assert.ok(response.ok, `${url} answered ${response.status}`)
  return (await response.json()) as Record<string, string>
}

const getJob = async (runner: LocalRunner, id: string | undefined, token: string | undefined) => {
  const response = await fetch(`${runner.url}/jobs/${id}`, { headers: { authorization: `Bearer ${token}` } })
  return (await response.json()) as { status: string }
}

const hasCurl = spawnSync('curl', ['--version']).error === undefined

/** Pastes what is printed, and answers what the last two commands have printed. */
const paste = (runner: LocalRunner) => {
  const { stdout } = spawnSync('sh', ['-c', commandsOf(runner).join('; echo; ')], { encoding: 'utf8' })
  const [submitted, listed] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return { submitted, listed }
}

test('from the first start to the next', (t) =>
  withHome(async (home) => {
    // As a killed run leaves it. The pid of a live process that is no runner: as after a restart of the machine.
    writeFileSync(join(home, 'dev.lock'), String(process.pid))
    writeFileSync(join(home, 'demo-port'), '20000')
    const first = await startRunner(home, { SMARTQUEUE_MAX_WORKERS: '5' })

    await t.test('it says what it starts, and what to paste; a stale lock is not in the way', () => {
      const steps = [...first.output().matchAll(/✓ (\w+)/g)].map(([, part]) => part)
      assert.deepEqual(steps, [
        ...['PostgreSQL', 'Migrations', 'Logins', 'Gateway', 'Functions', 'Worker', 'Autoscaler'],
      ])
      assert.match(first.output(), /1 to 5 workers, by predicted work/)
      assert.match(first.output(), new RegExp(`^SmartQueue ready: ${first.url}$`, 'm'))
      assert.equal(commandsOf(first).length, 3)
      assert.match(first.output(), new RegExp(`PORT=\\d+ SMARTQUEUE_HOME=${home} npm run demo$`, 'm'))
      assert.equal(readDemoPort(home), undefined, 'SMARTQUEUE_HTTP_ALLOW says what jobs may reach')
      assert.match(commandsOf(first)[0] ?? '', /auth\/register/)
    })

    await t.test('the printed commands register, submit and look', { skip: !hasCurl && 'needs curl' }, () => {
      const { submitted, listed } = paste(first)
      assert.equal(submitted.name, 'hello')
      assert.equal(listed.items.length, 1)
    })

    const entry = hasCurl ? 'login' : 'register'
    const { access_token } = await post(`${first.url}/auth/${entry}`, CREDENTIALS)
    const job = { name: 'hello', type: 'http', payload: { url: `${first.url}/healthz` } }
    const { id } = await post(`${first.url}/jobs`, job, access_token)
    await t.test('a job that is submitted completes', async () => {
      await waitFor(
        'the job to complete',
        async () => (await getJob(first, id, access_token)).status === 'completed',
      )
    })

    await t.test('a second runner on the same folder is refused in one line', async () => {
      const second = await spawnRunner(home)
      assert.equal(await second.exited, 1)
      assert.match(
        second.output(),
        /^SmartQueue already runs from .*\(pid \d+\)\. Stop it, or set SMARTQUEUE_HOME\.\n$/,
      )
      assert.ok(second.output().includes(`(pid ${first.pid})`))
      assert.equal((await fetch(`${first.url}/readyz`)).status, 200, 'the first one is unharmed')
    })

    await t.test('Ctrl-C stops all of it', async () => {
      const processes = first.processes()
      assert.ok(processes.length >= 4, 'Postgres, wrangler, workerd and a worker are processes of their own')
      process.kill(first.pid, 'SIGINT')
      assert.equal(await first.exited, 0)
      await untilAllGone(processes)
    })

    await t.test('the next start finds the data', async () => {
      const next = await startRunner(home)
      assert.match(commandsOf(next)[0] ?? '', /auth\/login/, 'the account of the example is there by now')
      const session = await post(`${next.url}/auth/login`, CREDENTIALS)
      assert.equal((await getJob(next, id, session.access_token)).status, 'completed')
      assert.equal((await getJob(next, id, access_token)).status, 'completed', 'the signing key is kept too')
      if (hasCurl) assert.equal(paste(next).listed.items.length, 3)
      process.kill(next.pid, 'SIGTERM')
      assert.equal(await next.exited, 0)
    })
  }))

test('a taken port is one line that names the port and the variable', () =>
  withHome(async (home) => {
    const port = await freePort()
    const occupant = createServer().listen(port, '127.0.0.1')
    const runner = await spawnRunner(home, { PORT: String(port) })
    assert.equal(await runner.exited, 1)
    assert.equal(
      runner.output(),
      `Port ${port} is taken. Set PORT to a free one: PORT=${port + 1} npm run dev\n`,
    )
    occupant.close()
  }))

test('DATABASE_URL is used as it is, and nothing embedded starts', (t) =>
  withHome(async (home) => {
    const database = await createTestDatabase({ empty: true })
    const runner = await startRunner(home, { DATABASE_URL: database.url, SMARTQUEUE_HTTP_ALLOW: '' })
    assert.equal(
      runner.processes().some(({ command }) => command.includes('postgres -D')),
      false,
    )
    assert.equal(existsSync(join(home, 'postgres')), false)
    const { access_token } = await post(`${runner.url}/auth/register`, CREDENTIALS)
    assert.equal((await database.sql('select username from users')).length, 1)

    await t.test('of this machine, jobs reach the port of the demo and no other', async (t) => {
      const port = readDemoPort(home)
      const demo = createHttpServer((_, response) => response.end()).listen(port, '127.0.0.1')
      t.after(() => {
        demo.closeAllConnections()
        demo.close()
      })
      const endOf = async (url: string): Promise<string> => {
        const job = { name: 'call', type: 'http', payload: { url }, retry: { max_attempts: 1 } }
        const { id } = await post(`${runner.url}/jobs`, job, access_token)
        const end = async () => (await getJob(runner, id, access_token)).status
        return waitFor('its end', async () => ['completed', 'failed'].includes(await end()) && end())
      }
      assert.equal(await endOf(`http://127.0.0.1:${port}/`), 'completed')
      assert.equal(await endOf(`${runner.url}/healthz`), 'failed')
    })

    process.kill(runner.pid, 'SIGTERM')
    assert.equal(await runner.exited, 0)
    assert.equal(readDemoPort(home), undefined, 'told only while it runs')
    await database.drop()
  }))

test('a database that cannot be reached is one clear line', () =>
  withHome(async (home) => {
    const runner = await spawnRunner(home, { DATABASE_URL: 'postgres://someone:secret@127.0.0.1:9/none' })
    assert.equal(await runner.exited, 1)
    assert.match(
      runner.output(),
      /^PostgreSQL at 127\.0\.0\.1:9 \(DATABASE_URL\) cannot be used: connect ECONNREFUSED 127\.0\.0\.1:9\. Stopping everything\.$/m,
    )
    assert.doesNotMatch(runner.output(), /✓/)
    assert.doesNotMatch(runner.output(), /secret/)
  }))
