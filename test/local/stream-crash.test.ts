/**
 * Tests the stream across Postgres crashes: Postgres is killed with SIGKILL repeatedly while a worker claims
 * and finishes jobs. Claims commit asynchronously and clients see them immediately; with the WAL writer
 * slowed down, a crash is certain to lose some that a client has seen.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../worker-runtime/local/embedded-postgres.ts'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { startReaper } from '../../worker-runtime/local/reaper-link.ts'
import { migrateDatabase } from '../../worker-runtime/migrate.ts'
import { registerUser } from '../support/accounts.ts'
import { createLogins } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { createTestFolder } from '../support/folder.ts'
import type { StreamedEvent } from '../support/stream.ts'
import { followStream, type StreamFollower } from '../support/stream-follower.ts'
import { waitFor } from '../support/wait-for.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

const KILLS = Number(process.env.TEST_POSTGRES_KILLS ?? 3)
const BATCH = 20
const HELD = 8

// However this process ends, its Postgres is stopped too.
const reaper = startReaper(() => {})
let folder: string
let port: number
let postgres: EmbeddedPostgres
let edge: Edge
let worker: TestWorker
before(async () => {
  folder = await createTestFolder()
  port = await freePort()
  postgres = await startPostgres()
  await migrateDatabase(postgres.url)
  await createLogins(postgres.superuserUrl)
  edge = await startEdge({ databaseUrl: postgres.superuserUrl })
  worker = await startWorker(postgres.superuserUrl)
})
after(async () => {
  await worker?.stop()
  await edge?.stop()
  await postgres?.stop()
  reaper.release()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

const startPostgres = () =>
  startEmbeddedPostgres({
    ...{ dataDir: join(folder, 'postgres'), password: 'test', port },
    // A killed process loses what it has not passed to the operating system. Nothing here has to survive a
    // power failure.
    settings: { fsync: 'off', full_page_writes: 'off', wal_writer_delay: '10s', autovacuum: 'off' },
    onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 5_000 }),
  })

const killServer = async (): Promise<void> => {
  process.kill(postgres.pid, 'SIGKILL')
  await postgres.exited
  reaper.forget(postgres.pid)
  // Waits until the server's other processes have exited, too.
  postgres = await startPostgres()
}

/** The postmaster terminates all other processes and recovers without exiting itself. */
const killOneProcess = async (): Promise<void> => {
  const pid = await walWriter()
  process.kill(pid, 'SIGKILL')
  await waitFor('recovery', async () => (await walWriter()) !== pid)
}

const walWriter = async (): Promise<number> => {
  const text = `select pid from pg_stat_activity where backend_type = 'walwriter'`
  const [row] = await sql<{ pid: number }>(text)
  assert.ok(row)
  return row.pid
}

const sql = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> => {
  const client = new pg.Client(postgres.superuserUrl)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

test(`after each of ${KILLS} Postgres crashes a client has only events that were not undone, and misses none`, async (t) => {
  const target = await startTarget()
  t.after(target.stop)
  const { token: session, orgId } = await registerUser(edge)
  const json = { name: 'follower', scopes: ['jobs:read', 'jobs:submit'] }
  const { key: token } = (await edge.request('POST', '/auth/keys', { token: session, json })).body
  const follower = await followStream(edge, token)
  t.after(follower.stop)

  /** Ids of the jobs that the API has acknowledged. */
  const submit = async (path: string, count: number): Promise<string[]> => {
    const job = { name: path, type: 'http', payload: { url: `${target.url}${path}` } }
    const answer = await edge.request('POST', '/jobs/batch', {
      token,
      json: { jobs: Array(count).fill(job) },
    })
    assert.ok(answer.status === 201 || answer.status === 503, answer.text)
    return (answer.body.jobs ?? []).map(({ id }: { id: string }) => id)
  }
  const keepSubmitting = async (isOver: () => boolean): Promise<void> => {
    while (!isOver()) await submit('/ok', BATCH)
  }
  let phantoms = 0
  for (let kill = 1; kill <= KILLS; kill++) {
    target.hold()
    // Every other crash is under load. The others happen while jobs run and nothing commits synchronously,
    // which would flush their claims.
    const isUnderLoad = kill % 2 === 0
    let isOver = false
    const load = keepSubmitting(() => isOver)
    const seen = follower.events.length
    await waitFor(
      'jobs that are done',
      () =>
        follower.events.length > seen + 2 * BATCH &&
        follower.events.some(({ job }) => job.status === 'completed'),
    )
    if (!isUnderLoad) {
      isOver = true
      await load
      await untilSettled(follower, orgId)
      const held = new Set(await submit('/held', HELD))
      await waitFor('running jobs', () =>
        follower.events.some(({ job }) => held.has(job.id) && job.status === 'running'),
      )
    }
    const before = follower.events
    await (kill % 3 === 0 ? killOneProcess() : killServer())
    isOver = true
    target.release()
    await load
    const known = new Set((await storedEvents(orgId, '0')).map(({ at, ...event }) => keyOf(event, at)))
    phantoms += before.filter((event) => !known.has(keyOf(factOf(event), event.at))).length
    await untilSettled(follower, orgId)
  }
  t.diagnostic(
    `${phantoms} events were seen and lost in ${KILLS} crashes; resyncs: ${follower.resyncs.join(' ')}`,
  )
  assert.ok(phantoms > 0, 'some claims that a client saw were lost')
  assert.equal(follower.resyncs.filter((reason) => reason === 'database_restarted').length, KILLS)
})

type Fact = { job_id: string; state: string; attempt: number }
type StoredEvent = Fact & { cursor: string; at: string }

const factOf = ({ job }: StreamedEvent): Fact => ({
  ...{ job_id: job.id, state: job.status, attempt: job.attempts },
})

/** The content of an event without its position, because transaction ids are reused. */
const keyOf = ({ job_id, state, attempt }: Fact, at: string): string =>
  [job_id, state, attempt, new Date(at).toISOString()].join(' ')

/** Events of the organisation from a transaction on, in stream order. */
const storedEvents = (orgId: string, fromXid: string): Promise<StoredEvent[]> =>
  sql<StoredEvent>(
    `select
      concat_ws('-', database_incarnation(), g.xid, e.id, e.position) as cursor, e.job_id, e.state, e.attempt,
      to_jsonb(e.at) #>> '{}' as at
    from job_event_groups g
    join job_events e on e.id = g.id
    where g.org_id = $1
      and g.xid >= $2::xid8
    order by g.xid, e.id, e.position`,
    [orgId, fromXid],
  )

/**
 * Every job is done, and the client has every job's state and exactly the events stored since it last
 * started.
 */
const untilSettled = async (follower: StreamFollower, orgId: string): Promise<void> => {
  const compare = async () => {
    const [, xid = '0'] = follower.start.split('-')
    const stored = (await storedEvents(orgId, xid)).map(({ at, cursor, ...fact }) => toLine(cursor, fact))
    const seen = follower.events.map((event) => toLine(event.cursor, factOf(event)))
    const jobs = await sql<{ id: string; status: string; attempts: number }>(
      'select id, status, attempts from job_overview where org_id = $1',
      [orgId],
    )
    const isKnown = ({ id, status, attempts }: (typeof jobs)[number]): boolean => {
      const known = follower.jobs.get(id)
      return known?.status === status && known.attempts === attempts
    }
    return {
      phantom: seen.filter((line) => !stored.includes(line)),
      missing: stored.filter((line) => !seen.includes(line)),
      outOfOrder: seen.filter((line, n) => stored.includes(line) && stored[n] !== line),
      misunderstood: jobs.filter((job) => !isKnown(job)),
      unfinished: jobs.filter(({ status }) => status !== 'completed'),
      unknown: jobs.length - follower.jobs.size,
    }
  }
  let last: Awaited<ReturnType<typeof compare>> | undefined
  await waitFor('the client to know what is stored', async () => {
    last = await compare()
    return isDeepStrictEqual(last, SETTLED)
  }).catch(() => {})
  assert.deepEqual(last, SETTLED)
}

const SETTLED = { phantom: [], missing: [], outOfOrder: [], misunderstood: [], unfinished: [], unknown: 0 }

const toLine = (cursor: string, { job_id, state, attempt }: Fact): string =>
  [cursor, job_id, state, attempt].join(' ')

/** The server that the jobs call. `/held` answers once it is released. */
const startTarget = async () => {
  let gate = Promise.withResolvers<void>()
  const server = createServer(async ({ url }, response) => {
    if (url === '/held') await gate.promise
    response.end('done')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold: () => {
      gate = Promise.withResolvers()
    },
    release: () => gate.resolve(),
    stop: async () => {
      gate.resolve()
      server.closeAllConnections()
      server.close()
    },
  }
}
