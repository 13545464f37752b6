import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { parseConfig } from '../../worker-runtime/config.ts'
import { functionsBindings } from '../../worker-runtime/local/functions-bindings.ts'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { asLogin, createTestDatabase } from '../support/database.ts'
import { withHome } from '../support/local-runner.ts'
import { waitFor } from '../support/wait-for.ts'

const run = (env: Record<string, string>, ...args: string[]) =>
  spawnSync(process.execPath, ['worker-runtime/local/functions.ts', ...args], {
    env: { ...process.env, DATABASE_URL: '', ...env },
    encoding: 'utf8',
  })

test('the functions alone say in one line what they miss', async () => {
  const help = run({}, '--help')
  assert.equal(help.status, 0)
  assert.match(help.stdout, /--ip ADDRESS/)

  const blind = run({})
  assert.equal(blind.status, 1)
  assert.match(blind.stderr, /^DATABASE_URL: the functions need the Postgres that jobs are in\n$/)

  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  const late = run({ DATABASE_URL: 'postgres://127.0.0.1/none', PORT: String(port) })
  server.close()
  assert.equal(late.status, 1)
  assert.match(late.stderr, new RegExp(`^Port ${port} is taken`))
})

test('npm run functions serves an external Postgres until it is stopped', () =>
  withHome(async (home) => {
    const database = await createTestDatabase()
    const port = await freePort()
    const child = spawn(process.execPath, ['worker-runtime/local/functions.ts'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        DATABASE_URL: asLogin(database.url, 'functions'),
        SMARTQUEUE_HOME: home,
        PORT: String(port),
      },
    })
    const exited = once(child, 'exit')
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    try {
      await waitFor(
        'the functions',
        () => child.exitCode !== null || output.includes('functions ready'),
        60_000,
      )
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
      assert.deepEqual([ready.status, (await fetch(`http://127.0.0.1:${port}/`)).status], [200, 200])
      child.kill('SIGTERM')
      assert.deepEqual(await exited, [0, null])
      await assert.rejects(fetch(`http://127.0.0.1:${port}/readyz`))
    } finally {
      child.kill('SIGKILL')
      await database.drop()
    }
  }))

test('the functions on their own trace as configured, register invited users only and trust no address header', () => {
  const settings = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret',
    OTEL_TRACES_SAMPLER: 'always_on',
  }
  const gateway = { connectionString: 'postgres://gateway/jobs', address: '127.0.0.1:1' }
  assert.deepEqual(functionsBindings(parseConfig(settings), gateway, { authKeys: '{}' }), {
    DATABASE_URL: 'postgres://gateway/jobs',
    NEON_GATEWAY: '127.0.0.1:1',
    AUTH_KEYS: '{}',
    CORS_ORIGINS: '',
    SMARTQUEUE_REGISTRATION: 'invite',
    SMARTQUEUE_ORGS_PER_ACCOUNT: '5',
    SMARTQUEUE_CLIENT_ADDRESS_HEADER: 'none',
    ...settings,
  })
})
