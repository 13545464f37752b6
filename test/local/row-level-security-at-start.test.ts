import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())

const startWorker = (url: string) =>
  spawnSync(process.execPath, ['worker-runtime/main.ts'], {
    env: { ...process.env, DATABASE_URL: url },
    encoding: 'utf8',
  })

test('a worker refuses to start under a role that could bypass row-level security, or is not its own', () => {
  for (const [url, reason] of [
    [database.url, /bypasses row-level security.*database-login workers/],
    [asLogin(database.url, 'both'), /groups of both/],
  ] as const) {
    const { status, stderr } = startWorker(url)
    assert.equal(status, 1)
    assert.match(stderr, reason)
    assert.doesNotMatch(stderr, /:\/\//, 'without the URL')
  }
})

test('the functions answer nothing under such a role, and readyz says why', async () => {
  for (const login of ['owner', 'workers', 'both'] as const) {
    const edge = await startEdge({ databaseUrl: database.url, login })
    const ready = await edge.request('GET', '/readyz')
    assertProblem(ready, 503, 'not-ready')
    assert.match(ready.body.detail, /database role/)
    const json = { username: 'ada', password: 'correct horse' }
    assertProblem(await edge.request('POST', '/auth/register', { json }), 503, 'not-ready')
    assert.equal((await edge.request('GET', '/healthz')).status, 200)
    await edge.stop()
  }
  assert.deepEqual(await database.sql('select from users'), [])
})

test('neither runtime accepts a login that may create temporary tables', async () => {
  const rights = `temporary on database ${new URL(database.url).pathname.slice(1)}`
  await database.sql(`grant ${rights} to test_functions, test_workers`)
  const { status, stderr } = startWorker(asLogin(database.url, 'workers'))
  assert.equal(status, 1)
  assert.match(stderr, /test_workers may create temporary tables.*npm run migrate/)
  const edge = await startEdge({ databaseUrl: database.url })
  const ready = await edge.request('GET', '/readyz')
  assertProblem(ready, 503, 'not-ready')
  assert.match(ready.body.detail, /test_functions may create temporary tables/)
  await database.sql(`revoke ${rights} from test_functions, test_workers`)
  assert.equal((await edge.request('GET', '/readyz')).status, 200)
  await edge.stop()
})
