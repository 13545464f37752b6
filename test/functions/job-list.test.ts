import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { JOB_STATES } from '../../db/rules/job-states.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
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

/** All ids of a list, read page by page. */
const list = async (query: string, account = ada, limit = 3): Promise<string[]> => {
  const ids: string[] = []
  for (let cursor = ''; ; ) {
    const path = `/jobs?limit=${limit}&${query}${cursor && `&cursor=${cursor}`}`
    const { status, body, text } = await edge.request('GET', path, { token: account.token })
    assert.equal(status, 200, text)
    ids.push(...body.items.map(({ id }: { id: string }) => id))
    if (body.next_cursor === null) return ids
    cursor = body.next_cursor
  }
}

test('jobs are listed by each status', async () => {
  const carol = await registerUser(edge)
  for (const state of JOB_STATES) {
    const ids = []
    for (let n = 0; n < 4; n++) ids.unshift(await jobInState(database.run, carol, state))
    await jobInState(database.run, bob, state)
    assert.deepEqual(await list(`status=${state}`, carol), ids, state)
  }
})

test('filters hold together, over all pages', async () => {
  const dora = await registerUser(edge)
  const all = Array.from({ length: 48 }, (_, n) => ({
    ...newJob({
      type: n % 2 ? 'odd' : 'even',
      name: `name ${n % 3}`,
      priority: n % 4 === 0 ? 'high' : 'normal',
      tags: n % 5 === 0 ? ['fifth', 'x'] : [],
      run_at: n % 6 === 0 ? '2999-01-01T00:00:00Z' : null,
    }),
    n,
  }))
  await seedJobs(database.run, dora, all)
  await seedJobs(database.run, bob, [
    newJob({ type: 'odd', name: 'name 1', tags: ['fifth'], priority: 'high' }),
  ])
  const expected = (fits: (n: number) => boolean) =>
    all.flatMap(({ id, n }) => (fits(n) ? [id] : [])).toReversed()
  const cases: [string, (n: number) => boolean][] = [
    ['type=odd', (n) => n % 2 === 1],
    ['name=name%202', (n) => n % 3 === 2],
    ['type=odd&name=name%201', (n) => n % 2 === 1 && n % 3 === 1],
    ['priority=high', (n) => n % 4 === 0],
    ['priority=normal', (n) => n % 4 !== 0],
    ['priority=low', () => false],
    ['tag=fifth', (n) => n % 5 === 0],
    ['tag=nothing', () => false],
    [`created_by=${dora.userId}`, () => true],
    [`created_by=${ada.userId}`, () => false],
    ['tag=fifth&type=odd', (n) => n % 5 === 0 && n % 2 === 1],
    ['tag=fifth&priority=high', (n) => n % 20 === 0],
    ['status=pending&type=even', (n) => n % 6 === 0],
    ['status=ready&type=even', (n) => n % 2 === 0 && n % 6 !== 0],
    ['status=ready&tag=x&priority=normal', (n) => n % 6 !== 0 && n % 5 === 0 && n % 4 !== 0],
    [`status=pending&name=name%200&created_by=${dora.userId}&priority=high`, (n) => n % 12 === 0],
    ['status=completed&type=even', () => false],
  ]
  for (const [query, fits] of cases) assert.deepEqual(await list(query, dora, 4), expected(fits), query)
})

test('what the newest 10000 jobs do not have is found among all others', async () => {
  const eve = await registerUser(edge)
  const wanted = Array.from({ length: 5 }, () => newJob({ type: 'old', name: 'old', tags: ['old'] }))
  const crowd = Array.from({ length: 102 }, (_, n) =>
    newJob({ name: `crowd ${n}`, tags: n === 50 ? ['lone'] : [] }),
  )
  await seedJobs(database.run, eve, crowd)
  await seedJobs(database.run, eve, wanted)
  await seedJobs(
    database.run,
    eve,
    Array.from({ length: 10_001 }, () => newJob({ type: 'new', name: 'new' })),
  )
  const expected = wanted.map(({ id }) => id).toReversed()
  const queries = [
    ...['type=old', 'name=old', 'tag=old', 'tag=old&type=old', 'priority=normal&tag=old'],
    ...['text=OL', 'text=old', 'text=ol&type=old', 'text=old&tag=old', 'text=OL&priority=normal'],
  ]
  for (const query of queries) {
    assert.deepEqual(await list(query, eve), expected, query)
    assert.deepEqual(await list(`status=ready&${query}`, eve), expected, `ready ${query}`)
  }
  assert.deepEqual(await list(`text=${expected[2]}`, eve), [expected[2]])
  const nobody = await edge.request('GET', `/jobs?created_by=${ada.userId}`, { token: eve.token })
  assert.deepEqual(nobody.body.items, [], 'no index leads to a creator')
  assert.notEqual(nobody.body.next_cursor, null, 'the search goes on')
  assert.deepEqual(await list(`created_by=${ada.userId}`, eve), [])
  assert.deepEqual(await list('text=crowd', eve, 50), crowd.map(({ id }) => id).toReversed())
  assert.deepEqual(await list('text=crowd&tag=lone', eve), [crowd[50]?.id], 'in many series, with a rare tag')
})

test('a text finds jobs by a part of their name, by a whole tag and by their id', async () => {
  const gail = await registerUser(edge)
  const make = (name: string, tags: string[] = []) => newJob({ name, tags, type: name.slice(0, 3) })
  const all = [
    make('Nightly Report'),
    make('weekly report', ['report']),
    make('100% of_it\\\\'),
    make('GRÖSSE messen'),
    make('other', ['report', 'Nightly']),
    make('other', ['reports']),
  ]
  const [nightly, weekly, odd, size, tagged] = all.map(({ id }) => id)
  await seedJobs(database.run, gail, all)
  await seedJobs(database.run, bob, [make('a report of somebody else', ['report'])])
  const cases: [string, (string | undefined)[]][] = [
    ['REPORT', [weekly, nightly]],
    ['report', [tagged, weekly, nightly]],
    ['nightly', [nightly]],
    ['Nightly', [tagged, nightly]],
    ['größe', []],
    ['grösse', [size]],
    ['%', [odd]],
    ['_', [odd]],
    ['\\\\', [odd]],
    ['r_port', []],
    [weekly ?? '', [weekly]],
    [weekly?.toUpperCase() ?? '', [weekly]],
    [weekly?.slice(0, 20) ?? '', []],
    [crypto.randomUUID(), []],
  ]
  for (const [text, expected] of cases) {
    const query = `text=${encodeURIComponent(text)}`
    assert.deepEqual(await list(query, gail, 1), expected, text)
    assert.deepEqual(await list(`status=ready&${query}`, gail, 1), expected, `ready ${text}`)
    assert.deepEqual(await list(`status=failed&${query}`, gail), [], `failed ${text}`)
  }
  assert.deepEqual(await list('text=report&type=wee', gail), [weekly])
  assert.deepEqual(await list('text=report&name=other', gail), [tagged])
  assert.deepEqual(await list('text=report&tag=Nightly', gail), [tagged])
  assert.deepEqual(await list(`text=${weekly}`, bob), [], 'an id of somebody else')
})

test('jobs are listed by when they were created', async () => {
  const fred = await registerUser(edge)
  const ids = await seedJobs(database.run, fred, [newJob(), newJob(), newJob()])
  const days = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z']
  // Ids carry the time, too.
  for (const [n, id] of ids.entries()) {
    const at = new Date(days[n] ?? '')
    const hex = at.getTime().toString(16).padStart(12, '0')
    const moved = `${hex.slice(0, 8)}-${hex.slice(8)}${id.slice(13)}`
    await database.sql('update jobs set created_at = $2, id = $3 where id = $1', [id, at, moved])
    await database.sql('update ready_jobs set job_id = $2 where job_id = $1', [id, moved])
    ids[n] = moved
  }
  const [first, second, third] = ids
  assert.deepEqual(await list(`created_after=${days[1]}`, fred), [third, second])
  assert.deepEqual(await list(`created_before=${days[1]}`, fred), [first])
  assert.deepEqual(await list(`created_after=2026-01-01T12:00:00%2B01:00&created_before=${days[2]}`, fred), [
    second,
  ])
  assert.deepEqual(await list(`status=ready&created_after=${days[1]}&type=test`, fred), [third, second])
  assert.deepEqual(await list(`status=ready&created_before=${days[1]}`, fred), [first])
})

test('bad filters are refused by name', async () => {
  const refuse = async (query: string, pointer: string) =>
    assertProblem(
      await edge.request('GET', `/jobs?${query}`, { token: ada.token }),
      422,
      'invalid-request',
      pointer,
    )
  await refuse('status=lost', '#/status')
  await refuse('priority=urgent', '#/priority')
  await refuse('created_by=me', '#/created_by')
  await refuse('created_after=yesterday', '#/created_after')
  await refuse('created_before=2026-01-01', '#/created_before')
  await refuse(`tag=${'x'.repeat(65)}`, '#/tag')
  for (const field of ['type', 'name', 'tag', 'text']) await refuse(`${field}=a%00b`, `#/${field}`)
  await refuse('text=', '#/text')
  await refuse(`text=${'x'.repeat(201)}`, '#/text')
  await refuse('fingerprint=abc', '#/fingerprint')
  await refuse(`fingerprint=${'a'.repeat(32)}&status=ready`, '#/status')
})

test('SQL text in a filter is text', async () => {
  for (const attack of [`'; drop table jobs; --`, `' or '1'='1`, '$1', '\\']) {
    for (const field of ['type', 'name', 'tag', 'text']) {
      assert.deepEqual(await list(`${field}=${encodeURIComponent(attack)}`), [])
    }
  }
})
