import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { parseConfig } from '../../worker-runtime/config.ts'
import { functionsBindings } from '../../worker-runtime/local/functions-bindings.ts'

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
