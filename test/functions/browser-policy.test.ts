import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

const APP = 'https://app.example.com'

let database: TestDatabase
let closed: Edge
let open: Edge
before(async () => {
  database = await createTestDatabase()
  closed = await startEdge({ databaseUrl: database.url })
  open = await startEdge({
    databaseUrl: database.url,
    bindings: { CORS_ORIGINS: `${APP}, http://localhost:3000` },
  })
})
after(async () => {
  await Promise.all([closed.stop(), open.stop()])
  await database.drop()
})

const preflight = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization',
}

const corsOf = ({ headers }: { headers: Headers }) => headers.get('access-control-allow-origin')

test('pages of other origins are shut out unless they are listed', async () => {
  for (const [edge, origin] of [
    [closed, APP],
    [open, 'https://evil.example.com'],
    [open, 'https://app.example.com.evil.com'],
    [open, 'null'],
  ] as const) {
    for (const path of ['/healthz', '/openapi.json'])
      assert.equal(corsOf(await edge.request('GET', path, { headers: { origin } })), null, origin)
    assert.equal(corsOf(await edge.request('OPTIONS', '/jobs', { headers: { origin, ...preflight } })), null)
  }
})

test('pages of a listed origin may call, and read what they need', async () => {
  for (const origin of [APP, 'http://localhost:3000']) {
    const answer = await open.request('GET', '/jobs', { headers: { origin } })
    assertProblem(answer, 401, 'unauthenticated')
    assert.equal(corsOf(answer), origin)
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /retry-after/)
    assert.equal(corsOf(await open.request('GET', '/openapi.json', { headers: { origin } })), origin)
    const asked = await open.request('OPTIONS', '/jobs', { headers: { origin, ...preflight } })
    assert.deepEqual([asked.status, corsOf(asked)], [204, origin])
    assert.match(asked.headers.get('access-control-allow-headers') ?? '', /idempotency-key/)
    assert.equal(asked.headers.get('access-control-allow-credentials'), null)
    assert.match(asked.headers.get('vary') ?? '', /origin/i)
  }
})

test('a list that is none refuses to work, and says which setting', async () => {
  for (const CORS_ORIGINS of ['*', 'https://app.example.com/', 'app.example.com']) {
    const edge = await startEdge({ databaseUrl: database.url, bindings: { CORS_ORIGINS } })
    assertProblem(await edge.request('GET', '/healthz'), 500, 'internal-error')
    await edge.stop()
  }
})

test('every answer tells browsers what not to do with it', async () => {
  for (const path of ['/healthz', '/jobs', '/nowhere', '/openapi.json']) {
    const { headers } = await closed.request('GET', path)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
    assert.match(headers.get('strict-transport-security') ?? '', /max-age=\d{8}/)
    assert.equal(headers.get('cache-control'), 'no-store')
  }
  for (const path of ['/', '/docs', '/join']) {
    const { headers } = await closed.request('GET', path)
    assert.match(headers.get('content-security-policy') ?? '', /script-src 'self'/)
  }
})

test('assets have the same transport security and content-type policy as the API', async () => {
  const policyOf = async (path: string) => {
    const { status, headers } = await closed.request('GET', path)
    assert.equal(status, 200, path)
    return ['strict-transport-security', 'x-content-type-options'].map((name) => headers.get(name))
  }
  const api = await policyOf('/healthz')
  for (const path of ['/', '/docs', '/join', '/tokens.css', '/openapi.json', '/dashboard/main.js'])
    assert.deepEqual(await policyOf(path), api, path)
})
