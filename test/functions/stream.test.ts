import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { fromElsewhere, registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { openStream, type StreamedEvent } from '../support/stream.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let edge: Edge
let sleepers: Awaited<ReturnType<typeof fallAsleep>>[]
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  sleepers = [await fallAsleep(), await fallAsleep()]
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const submit = async ({ token }: TestAccount, name: string, more: object = {}): Promise<string> => {
  const json = { name, type: 'test', payload: {}, ...more }
  const answer = await edge.request('POST', '/jobs', { token, json })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.id
}

/** An event that nobody is told of but the table, as a worker writes it. */
const WRITE = `select record_events(array[$1::uuid], array[$2::uuid], array[$3::job_state], '{1}')`

test('every change of state arrives as it is committed, with the job that it is of', async () => {
  const ada = await registerUser(edge)
  const client = await openStream(edge, { token: ada.token })
  const hello = await client.frame('hello')
  assert.equal(hello.credit, 256)
  assert.ok(Math.abs(Date.parse(hello.expires_at) - Date.now() - 600_000) < 20_000)
  const id = await submit(ada, 'nightly', { tags: ['a'], priority: 'high' })
  await edge.request('PATCH', `/jobs/${id}/cancel`, { token: ada.token })
  await client.until('both', () => client.events().length === 2)
  assert.deepEqual(client.told(), ['ready nightly', 'cancelled nightly'])
  const [first, second] = client.events()
  assert.deepEqual(first?.job, {
    ...{ id, name: 'nightly', type: 'test', status: 'ready', priority: 'high', tags: ['a'], attempts: 0 },
  })
  assert.ok(
    first && second && first.cursor !== second.cursor && Date.parse(first.at) <= Date.parse(second.at),
  )
  client.close()
})

test('whatever is submitted, bulk and batches included, is told of at once; another organisation hears nothing', async () => {
  const [ada, bob] = [await registerUser(edge), await registerUser(edge)]
  const [hers, his] = await Promise.all([ada, bob].map(({ token }) => openStream(edge, { token })))
  assert.ok(hers && his)
  const jobs = ['x', 'y', 'z'].map((name) => ({ name, type: 'test', payload: {} }))
  await edge.request('POST', '/jobs/batch', { token: ada.token, json: { jobs } })
  await hers.until('the batch', () => hers.events().length === 3)
  await edge.request('POST', '/jobs/bulk/cancel', { token: ada.token, json: { filter: { type: 'test' } } })
  await hers.until('their end', () => hers.events().length === 6)
  assert.deepEqual(hers.told().slice(0, 3), ['ready x', 'ready y', 'ready z'])
  assert.deepEqual(new Set(hers.told().slice(3)), new Set(['cancelled x', 'cancelled y', 'cancelled z']))
  await submit(bob, 'his')
  await his.until('his own', () => his.events().length > 0)
  assert.deepEqual(his.told(), ['ready his'])
  for (const client of [hers, his]) client.close()
})

test('filters by job, type, status and tag hold together', async () => {
  const ada = await registerUser(edge)
  await database.run(registerJobTypes([{ type: 'other', payload_schema: {} }]))
  const first = await submit(ada, 'first')
  const queries = [
    { job_id: first },
    { type: 'other' },
    { status: 'cancelled' },
    { tag: 't' },
    { tag: 't', type: 'test' },
  ]
  const [all, ...filtered] = await Promise.all(
    [{}, ...queries].map((query) =>
      openStream(edge, { token: ada.token, query: query as Record<string, string> }),
    ),
  )
  assert.ok(all)
  await submit(ada, 'tagged', { type: 'other', tags: ['t'] })
  await submit(ada, 'both', { tags: ['s', 't'] })
  await edge.request('PATCH', `/jobs/${first}/cancel`, { token: ada.token })
  await all.until('all', () => all.events().length === 3)
  const expected = [
    ['cancelled first'],
    ['ready tagged'],
    ['cancelled first'],
    ['ready tagged', 'ready both'],
    ['ready both'],
  ]
  await waitFor('the others', () =>
    filtered.every((client, n) => client.told().length === expected[n]?.length),
  )
  assert.deepEqual(
    filtered.map((client) => client.told()),
    expected,
  )
  for (const client of [all, ...filtered]) client.close()
})

test('whoever is cut off again and again while events commit out of order misses none and sees none twice', async () => {
  const ada = await registerUser(edge)
  const [jobId = ''] = await seedJobs(database.run, ada, [newJob()])
  const observer = await openStream(edge, { token: ada.token })
  let cursor = observer.cursor()
  observer.close()
  const writers = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const client = new pg.Client({ connectionString: database.url })
      await client.connect()
      return client
    }),
  )
  const ROUNDS = 25
  const write = async (): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      for (const writer of writers) {
        await writer.query('begin')
        await writer.query(WRITE, [ada.orgId, jobId, 'running'])
      }
      // Not in the order in which they began.
      for (const n of [2, 0, 1]) await writers[(n + round) % 3]?.query('commit')
    }
  }
  const writing = write()
  const got: StreamedEvent[] = []
  const all = ROUNDS * writers.length
  for (let connection = 0; got.length < all; connection++) {
    const client = await openStream(edge, { token: ada.token, query: { cursor } })
    const enough = Math.min(all - got.length, 1 + ((connection * 7) % 13))
    await client.until('some', () => client.events().length >= enough)
    // Cut off somewhere among what has arrived.
    const kept = client.events().slice(0, enough)
    got.push(...kept)
    cursor = kept.at(-1)?.cursor ?? cursor
    client.close()
  }
  await writing
  await Promise.all(writers.map((writer) => writer.end()))
  const rows = await database.sql<{ cursor: string }>(
    `select concat_ws('-', database_incarnation(), xid, id, 1) as cursor from job_event_groups where org_id = $1 and states = '{running}' order by xid, id`,
    [ada.orgId],
  )
  assert.equal(rows.length, all)
  assert.deepEqual(
    got.map((event) => event.cursor),
    rows.map((row) => row.cursor),
  )
})

test('a client gets no more than it takes, and then all of the rest', async () => {
  const ada = await registerUser(edge)
  const slow = await openStream(edge, { token: ada.token, gives: false })
  const quick = await openStream(edge, { token: ada.token })
  await seedJobs(
    database.run,
    ada,
    Array.from({ length: 400 }, (_, n) => newJob({ name: `n${n}` })),
  )
  await quick.until('all', () => quick.events().length === 400)
  await slow.until('what it has credit for', () => slow.events().length === 256)
  slow.send({ type: 'credit', n: 100 })
  await slow.until('more', () => slow.events().length === 356)
  slow.send({ type: 'credit', n: 100 })
  await slow.until('the rest', () => slow.events().length === 400)
  assert.deepEqual(slow.told(), quick.told())
  slow.send({ type: 'subscribe' })
  const { code, reason } = await slow.closed
  assert.equal(code, 4400)
  assert.match(reason, /credit/)
  quick.close()
})

/** Many events by one statement. */
const flood = ({ orgId }: TestAccount, jobId: string, n: number) =>
  database.sql(
    `insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    values ($1, array_fill($2::uuid, array[$3::int]), '{running}', '{1}', '{}', '{}')`,
    [orgId, jobId, n],
  )

test('what nobody can look at is passed over, and the stream goes on behind it', async () => {
  const ada = await registerUser(edge)
  const [jobId = ''] = await seedJobs(database.run, ada, [newJob()])
  const client = await openStream(edge, { token: ada.token })
  const from = client.cursor()
  await flood(ada, jobId, 5_001)
  const { reason } = await client.frame('resync')
  assert.deepEqual([reason, client.events().length], ['burst', 0])
  await submit(ada, 'afterwards')
  await client.until('what comes then', () => client.events().length === 1)
  assert.deepEqual(client.told(), ['ready afterwards'])

  await flood(ada, jobId, 15_000)
  const late = await openStream(edge, { token: ada.token, query: { cursor: from } })
  assert.equal((await late.frame('resync')).reason, 'cursor_too_old', 'more than twenty thousand behind')
  const beyond = `${from.split('-')[0]}-${2n ** 62n}-1-1`
  const foreign = await openStream(edge, { token: ada.token, query: { cursor: beyond } })
  assert.equal((await foreign.frame('resync')).reason, 'cursor_too_old', 'beyond all transactions')
  await submit(ada, 'again')
  for (const one of [late, foreign]) {
    await one.until('what comes then', () => one.told().at(-1) === 'ready again')
    one.close()
  }
  client.close()
})

/** A client for server-sent events. */
const follow = async ({ token }: TestAccount, headers: Record<string, string> = {}) => {
  const abort = new AbortController()
  const response = await fetch(`${edge.url}/jobs/events/`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.signal,
  })
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
  let text = ''
  const reading = (async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk)
  })().catch(() => {})
  // Without what has arrived only in part, and without pings, which are comments.
  const blocks = () =>
    text
      .split('\n\n')
      .slice(0, -1)
      .filter((block) => !block.startsWith(':'))
  const stop = () => {
    abort.abort()
    return reading
  }
  return { blocks, stop }
}

test('the same as server-sent events, resumable by the id of the last', async () => {
  const ada = await registerUser(edge)
  const first = await follow(ada)
  await waitFor('the greeting', () => first.blocks()[0]?.includes('event: hello'))
  // More than the credit that there is without any given back.
  const names = Array.from({ length: 300 }, (_, n) => `n${n}`)
  await seedJobs(
    database.run,
    ada,
    names.map((name) => newJob({ name })),
  )
  await waitFor('all', () => first.blocks().length === 301)
  const [, ...events] = first.blocks()
  const parsed = events.map((block) => {
    const [id, event, data] = block.split('\n').map((line) => line.slice(line.indexOf(': ') + 2))
    return { id, event, data: JSON.parse(data ?? '') }
  })
  assert.deepEqual(
    parsed.map(({ data }) => data.job.name),
    names,
  )
  assert.deepEqual([parsed[0]?.event, parsed[0]?.id], ['job.ready', parsed[0]?.data.cursor])
  await first.stop()
  const second = await follow(ada, { 'last-event-id': parsed[297]?.id ?? '' })
  await waitFor('the rest', () => second.blocks().length === 3)
  assert.match(second.blocks()[1] ?? '', /"name":"n298"/)
  await second.stop()
})

test('the topic logs tells what a job writes and how far it is', async () => {
  const ada = await registerUser(edge)
  const [jobId = ''] = await seedJobs(database.run, ada, [newJob()])
  const log = (message: string) =>
    database.sql(
      `insert into job_logs (org_id, job_id, attempt, at, level, message) values ($1, $2, 1, now(), 'info', $3)`,
      [ada.orgId, jobId, message],
    )
  await log('before')
  const query = { topics: 'events,logs', job_id: jobId }
  const fromNow = await openStream(edge, { token: ada.token, query })
  const fromStart = await openStream(edge, { token: ada.token, query: { ...query, log_cursor: 'start' } })
  assert.equal((await fromNow.frame('progress')).progress, null)
  await log('one')
  await log('two')
  await database.sql(
    `insert into job_progress (job_id, org_id, progress, note) values ($1, $2, 0.25, 'a quarter')`,
    [jobId, ada.orgId],
  )
  const linesOf = (client: typeof fromNow) =>
    client.frames.flatMap((frame) => (frame.type === 'logs' ? frame.lines : []))
  await waitFor('the lines', () => linesOf(fromNow).length === 2 && linesOf(fromStart).length === 3)
  assert.deepEqual(
    linesOf(fromNow).map(({ at, ...line }) => ({ ...line, isTimed: Date.parse(at) > 0 })),
    ['one', 'two'].map((message) => ({ level: 'info', message, attempt: 1, isTimed: true })),
  )
  await fromNow.until('the progress', () =>
    fromNow.frames.some(({ progress }) => progress?.fraction === 0.25),
  )
  const progress = fromNow.frames.filter(({ type }) => type === 'progress').map((frame) => frame.progress)
  assert.deepEqual(progress, [null, { fraction: 0.25, note: 'a quarter' }], 'each once')
  const cursor = fromNow.frames.findLast(({ type }) => type === 'logs')?.cursor
  await log('three')
  const resumed = await openStream(edge, { token: ada.token, query: { ...query, log_cursor: cursor } })
  await waitFor('the line', () => linesOf(resumed).length === 1)
  assert.equal(linesOf(resumed)[0].message, 'three')
  for (const client of [fromNow, fromStart, resumed]) client.close()
  const bob = await registerUser(edge)
  await assert.rejects(openStream(edge, { token: bob.token, query }), /answered 404/)
})

test('the topic workers tells who works and who leads, when something of it has changed', async () => {
  const ada = await registerUser(edge)
  const client = await openStream(edge, { token: ada.token, query: { topics: 'workers' } })
  assert.deepEqual((await client.frame('workers')).workers, [])
  await database.sql(`
    insert into workers (worker_id, hostname, status, types, slots, cpu_units, memory_mb, running, jobs_processed, last_seen)
    values ('pod-1', 'host', 'online', '{test}', 10, 1, 512, 0, 0, now())`)
  await submit(ada, 'no event for this one')
  const told = () => client.frames.filter(({ type }) => type === 'workers')
  await client.until('the worker', () => told().at(-1)?.workers[0]?.worker_id === 'pod-1')
  const items = (await edge.request('GET', '/jobs/workers', { token: ada.token })).body.items
  assert.deepEqual(told().at(-1)?.workers, items)
  assert.deepEqual([told().at(-1)?.leader, told().length], [null, 2])
  assert.deepEqual(client.events(), [])
  client.close()
})

test('a delivery to a webhook is told of, too', async () => {
  const ada = await registerUser(edge)
  const template = { name: 'hooked', type: 'test', payload: {} }
  const made = await edge.request('POST', '/webhooks/sources', {
    token: ada.token,
    json: { name: 's', scheme: 'hmac', template },
  })
  assert.equal(made.status, 201, made.text)
  const client = await openStream(edge, { token: ada.token })
  const { createHmac } = await import('node:crypto')
  const body = '{}'
  const signature = createHmac('sha256', made.body.secret).update(body).digest('hex')
  const sent = await edge.request('POST', new URL(made.body.url).pathname, {
    body,
    headers: { 'x-signature': signature, 'x-hub-signature-256': `sha256=${signature}`, ...fromElsewhere() },
  })
  assert.ok(sent.status < 300, sent.text)
  await client.until('its job', () => client.told().includes('ready hooked'))
  client.close()
})

/** A stream that has told of 200 events and then has nothing to tell, while other tests run. */
const fallAsleep = async () => {
  const account = await registerUser(edge)
  const [jobId = ''] = await seedJobs(database.run, account, [newJob()])
  const query = { status: 'running' }
  const client = await openStream(edge, { token: account.token, gives: false, query })
  await flood(account, jobId, 200)
  await client.until('all', () => client.events().length === 200)
  return { account, jobId, client, quietAt: performance.now() + 12_000 }
}

test('an object that hibernates loses no event, no credit and no subscriber', async () => {
  const [sleeper] = sleepers
  assert.ok(sleeper)
  const { account, jobId, client, quietAt } = sleeper
  // Possible only once it waits for its alarm, and no longer for a timer.
  await waitFor('quiet', () => performance.now() > quietAt)
  await edge.evictStream(account.orgId)
  // Nobody tells the object: its alarm wakes it.
  await database.sql(WRITE, [account.orgId, jobId, 'running'])
  await client.until('the event', () => client.events().length === 201)
  await flood(account, jobId, 100)
  await client.until('as many as there was credit for', () => client.events().length === 256)
  client.send({ type: 'credit', n: 100 })
  await client.until('the rest', () => client.events().length === 301)
  assert.equal(new Set(client.events().map(({ cursor }) => cursor)).size, 301)
  client.close()
})

/** Postgres truncates unlogged tables during crash recovery. From then on every stream skips to its present once. */
const crash = () => database.sql('truncate incarnations')

test('after a database crash every client gets a resync and then all new events', async () => {
  const ada = await registerUser(edge)
  const [live, workers, events] = await Promise.all([
    openStream(edge, { token: ada.token }),
    openStream(edge, { token: ada.token, query: { topics: 'workers' } }),
    follow(ada),
  ])
  await submit(ada, 'before')
  await live.until('the event', () => live.told().includes('ready before'))
  await waitFor('the same event', () => events.blocks().length === 2)
  const cursor = live.cursor()
  await crash()
  const { reason, cursor: head } = await live.frame('resync')
  assert.equal(reason, 'database_restarted')
  assert.notEqual(head.split('-')[0], cursor.split('-')[0])
  assert.equal((await workers.frame('resync')).reason, 'database_restarted')
  await waitFor('the resync', () =>
    /^id: .*\nevent: resync\n.*"database_restarted"/.test(events.blocks()[2] ?? ''),
  )

  const resumed = await openStream(edge, { token: ada.token, query: { cursor } })
  assert.equal((await resumed.frame('resync')).reason, 'database_restarted')
  const byId = await follow(ada, { 'last-event-id': cursor })
  await waitFor('the resync', () => byId.blocks()[1]?.includes('"database_restarted"'))
  const onTime = await openStream(edge, { token: ada.token, query: { cursor: head } })
  await submit(ada, 'after')
  for (const client of [live, resumed, onTime]) {
    await client.until('what happens then', () => client.told().at(-1) === 'ready after')
    assert.equal(client.frames.filter(({ type }) => type === 'resync').length, client === onTime ? 0 : 1)
    client.close()
  }
  for (const client of [events, byId]) {
    await waitFor('what happens then', () => client.blocks().at(-1)?.includes('"name":"after"'))
    await client.stop()
  }
  workers.close()
})

test('an object that hibernated during a database crash sends its subscribers a resync', async () => {
  const sleeper = sleepers[1]
  assert.ok(sleeper)
  const { account, client } = sleeper
  await edge.evictStream(account.orgId)
  const before = client.frames.length
  await crash()
  await submit(account, 'wakes it')
  const told = await waitFor('the resync', () =>
    // A ping may come at any time.
    client.frames.slice(before).find(({ type }) => type !== 'ping'),
  )
  assert.deepEqual([told.type, told.reason], ['resync', 'database_restarted'])
  client.close()
})
