import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const graphOf = (id: string, account = ada): Promise<Answer> =>
  edge.request('GET', `/jobs/${id}/graph`, { token: account.token })

const nodesOf = ({ body }: Answer): string[] => body.nodes.map(({ id }: { id: string }) => id)

const edgesOf = ({ body }: Answer): string[] =>
  body.edges.map(({ from, to }: { from: string; to: string }) => `${from} ${to}`).sort()

/** Jobs of these names, each waiting for those before the arrow: `{c: 'a b'}`. */
const seed = async (waitsFor: Record<string, string>): Promise<Record<string, string>> => {
  const ids: Record<string, string> = {}
  for (const [name, parents] of Object.entries(waitsFor)) {
    const depends_on = parents.split(' ').flatMap((parent) => ids[parent] ?? [])
    const [id] = await seedJobs(database.run, ada, [newJob({ name, depends_on })])
    ids[name] = id ?? ''
  }
  return ids
}

test('a job without dependencies stands alone', async () => {
  const id = await jobInState(database.run, ada, 'completed', { name: 'alone', type: 'solo' })
  const { status, body, text } = await graphOf(id)
  assert.equal(status, 200, text)
  const { prediction, ...node } = body.nodes[0]
  assert.deepEqual(node, { id, name: 'alone', type: 'solo', status: 'completed', attempts: 1 })
  assert.ok(prediction.p50_ms > 0 && prediction.p90_ms >= prediction.p50_ms)
  assert.deepEqual([body.nodes.length, body.edges, body.truncated], [1, [], false])
})

test('from every corner of a diamond all of it is seen, the nearest first', async () => {
  const {
    top = '',
    left = '',
    right = '',
    bottom = '',
    after = '',
    ...rest
  } = await seed({
    ...{ top: '', left: 'top', right: 'top', bottom: 'left right', after: 'bottom' },
    unrelated: '',
  })
  const edges = [
    ...[`${top} ${left}`, `${top} ${right}`, `${left} ${bottom}`, `${right} ${bottom}`],
    `${bottom} ${after}`,
  ].sort()
  for (const id of [top, left, right, bottom, after]) {
    const graph = await graphOf(id)
    assert.deepEqual(nodesOf(graph).sort(), [top, left, right, bottom, after].sort())
    assert.deepEqual(edgesOf(graph), edges)
    assert.equal(nodesOf(graph)[0], id)
  }
  assert.deepEqual(nodesOf(await graphOf(after)).slice(0, 2), [after, bottom])
  assert.equal(nodesOf(await graphOf(after)).at(-1), top)
  const { nodes } = (await graphOf(top)).body
  assert.deepEqual(
    nodes.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`).sort(),
    ['after blocked', 'bottom blocked', 'left blocked', 'right blocked', 'top ready'],
  )
  assert.deepEqual(nodesOf(await graphOf(rest.unrelated ?? '')), [rest.unrelated])
})

test('of more jobs than are shown the nearest are, in both directions', async () => {
  const chain = Array.from({ length: 260 }, () => newJob())
  const linked = chain.map((job, n) => ({
    ...job,
    depends_on: chain.slice(Math.max(n - 1, 0), n).map(({ id }) => id),
  }))
  await seedJobs(database.run, ada, linked)
  const ids = chain.map(({ id }) => id)
  const middle = await graphOf(ids[130] ?? '')
  assert.equal(middle.body.truncated, true)
  // 99 or 100 to each side.
  const places = nodesOf(middle).map((id) => ids.indexOf(id))
  assert.equal(places.length, 200)
  assert.ok(places.every((place) => Math.abs(place - 130) <= 100))
  assert.equal(middle.body.edges.length, 199)
  const end = await graphOf(ids[0] ?? '')
  assert.deepEqual(nodesOf(end), ids.slice(0, 200))
  assert.equal(end.body.edges.length, 199)
})

test('exactly as many as are shown are all of them', async () => {
  const parent = newJob()
  const children = Array.from({ length: 199 }, () => newJob({ depends_on: [parent.id] }))
  await seedJobs(database.run, ada, [parent, ...children])
  const { body } = await graphOf(parent.id)
  assert.deepEqual([body.nodes.length, body.edges.length, body.truncated], [200, 199, false])
})

test('jobs of others, and what is no job, are not found', async () => {
  const { a = '' } = await seed({ a: '' })
  for (const id of [a, crypto.randomUUID(), 'none']) {
    assertProblem(await graphOf(id, bob), 404, 'not-found')
  }
})
