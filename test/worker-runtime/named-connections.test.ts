import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { after, before, describe, it, type TestContext } from 'node:test'
import pg from 'pg'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import { createJobSessions } from '../../worker-runtime/connections/job-sessions.ts'
import {
  type NamedConnections,
  parseConnections,
} from '../../worker-runtime/connections/named-connections.ts'
import { startExecution } from '../../worker-runtime/executor.ts'
import { JobError, type PostgresConnection } from '../../worker-runtime/handler-api.ts'
import type { Outcome } from '../../worker-runtime/outcome.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle } from '../support/worker.ts'

const OURS = '01890000-0000-7000-8000-00000000000a'
const THEIRS = '01890000-0000-7000-8000-00000000000b'
const JOB = '01890000-0000-7000-8000-000000000001'

let database: TestDatabase

before(async () => {
  database = await createTestDatabase({ empty: true })
})
after(() => database.drop())

const open = (t: TestContext, connections: NamedConnections, orgId = OURS) => {
  const controller = new AbortController()
  const sessions = createJobSessions({ connections, jobId: JOB, orgId, signal: controller.signal })
  t.after(() => sessions.close())
  return { ...sessions, abort: (reason: Error) => controller.abort(reason) }
}
const own = (): NamedConnections => ({ own: { url: `${database.url}?application_name=elsewhere` } })
const sessionsNow = () =>
  database.sql<{ query: string }>('select query from pg_stat_activity where application_name = $1', [
    `smartqueue job ${JOB}`,
  ])
const untilNone = () =>
  waitFor('the end of its sessions', async () => (await sessionsNow()).length === 0, 3_000)
const failure = (code: string, permanent: boolean, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof JobError, String(error))
  assert.deepEqual([error.code, error.permanent], [code, permanent])
  assert.match(error.message, message)
  return true
}

describe('SMARTQUEUE_CONNECTIONS', () => {
  it('names databases, for all organisations or for some', () => {
    const text = JSON.stringify({
      warehouse: 'postgres://u:p@db.example/w',
      'reports-2': { url: 'postgresql://db.example/r', orgs: [OURS.toUpperCase()] },
    })
    assert.deepEqual(parseConnections(text), {
      warehouse: { url: 'postgres://u:p@db.example/w' },
      'reports-2': { url: 'postgresql://db.example/r', orgs: [OURS] },
    })
    assert.deepEqual(parseConnections('{}'), {})
  })

  const bad: [string, string, RegExp][] = [
    ['no JSON', '{"a": postgres://u:secret@h/d}', /^must be a JSON object such as .*, and is not JSON$/],
    ['a list', '["postgres://u:secret@h/d"]', /^must be a JSON object/],
    ['a bad name', '{"My DB": "postgres://u:secret@h/d"}', /^"My DB": a name is/],
    ['another scheme', '{"a": "mysql://u:secret@h/d"}', /^"a": url must be a postgres:\/\/ URL$/],
    ['what is no URL', '{"a": "postgres://u:secret@h:port/d"}', /^"a": url must be a postgres:\/\/ URL$/],
    ['a number', '{"a": 5}', /^"a": must be a postgres:\/\/ URL, or /],
    ['no URL', '{"a": {}}', /^"a": url must be a postgres:\/\/ URL$/],
    ['nobody', '{"a": {"url": "postgres://u:secret@h/d", "orgs": []}}', /^"a": orgs must name one/],
    ['no id', '{"a": {"url": "postgres://u:secret@h/d", "orgs": ["acme"]}}', /^"a": orgs\.0 must be the id/],
    ['an unknown field', '{"a": {"url": "postgres://u:secret@h/d", "org": "x"}}', /^"a": .*"org"/],
  ]
  for (const [what, text, message] of bad) {
    it(`is refused with ${what}, without its secrets`, () => {
      assert.throws(
        () => parseConnections(text),
        (error: Error) => {
          assert.match(error.message, message)
          assert.ok(!error.message.includes('secret'))
          return true
        },
      )
    })
  }
})

describe('ctx.postgres', () => {
  it('answers statements, one after the other in one session', async (t) => {
    const session = await open(t, own()).open('own')
    await session.query('create temporary table t (n int)')
    const [inserted, found] = await Promise.all([
      session.query('insert into t select generate_series(1, $1::int)', [3]),
      session.query<{ n: number }>('select n from t where n > $1 order by n', [1]),
    ])
    assert.equal(inserted.rowCount, 3)
    assert.deepEqual(found, { rows: [{ n: 2 }, { n: 3 }], rowCount: 2 })
    assert.equal((await session.query('begin; commit')).rowCount, 0)
  })

  it('passes errors of statements through, and the session goes on', async (t) => {
    const session = await open(t, own()).open('own')
    await assert.rejects(
      session.query('select 1 / 0'),
      (error) => error instanceof pg.DatabaseError && error.code === '22012',
    )
    assert.equal((await session.query('select 1')).rowCount, 1)
  })

  it('knows an organisation only what it may use, and says what that is', async (t) => {
    const url = database.url
    const connections = { everyone: { url }, theirs: { url, orgs: [THEIRS] }, ours: { url, orgs: [OURS] } }
    const sessions = open(t, connections)
    await sessions.open('ours')
    await sessions.open('everyone')
    for (const name of ['theirs', 'nobodys']) {
      await assert.rejects(
        sessions.open(name),
        failure('unknown_connection', true, new RegExp(`named "${name}". There are: everyone, ours\\.$`)),
      )
    }
    await assert.rejects(
      open(t, { theirs: { url, orgs: [THEIRS] } }).open('theirs'),
      failure('unknown_connection', true, /There are none: .*SMARTQUEUE_CONNECTIONS\.$/),
    )
    await assert.rejects(
      open(t, own()).open('constructor'),
      failure('unknown_connection', true, /constructor/),
    )
  })

  it('fails for a retry, without a secret, if the database cannot be reached', async (t) => {
    const wrong = new URL(database.url)
    wrong.password = 'hush-hush'
    const missing = new URL(database.url)
    missing.pathname = '/nowhere'
    const silent = await listen(t, createServer())
    const connections = {
      closed: { url: 'postgres://u:hush-hush@127.0.0.1:1/d' },
      wrong: { url: wrong.href },
      missing: { url: missing.href },
      silent: { url: `postgres://u:hush-hush@127.0.0.1:${silent}/d` },
    }
    const sessions = open(t, connections)
    await assert.rejects(
      sessions.open('closed'),
      failure('connection_failed', false, /"closed": ECONNREFUSED\.$/),
    )
    await assert.rejects(
      sessions.open('wrong'),
      failure('connection_failed', false, /server answered 28P01\.$/),
    )
    await assert.rejects(
      sessions.open('missing'),
      failure('connection_failed', false, /server answered 3D000\.$/),
    )
    const stopped = new Error('stopped')
    const connecting = sessions.open('silent')
    setImmediate(() => sessions.abort(stopped))
    await assert.rejects(connecting, (error) => error === stopped, 'an abort does not wait for the network')
  })

  it('ends a running statement at the abort, here and on the server', async (t) => {
    const sessions = open(t, own())
    const session = await sessions.open('own')
    const sleeping = session.query('select pg_sleep(60)')
    const queued = session.query('select 1')
    await waitFor('it to run', async () => (await sessionsNow()).some(({ query }) => /pg_sleep/.test(query)))
    const stopped = new Error('stopped')
    const abortedAt = performance.now()
    sessions.abort(stopped)
    for (const answer of [sleeping, queued]) await assert.rejects(answer, (error) => error === stopped)
    assert.ok(performance.now() - abortedAt < 200, 'at once')
    await untilNone()
    await assert.rejects(session.query('select 1'), (error) => error === stopped)
    await assert.rejects(sessions.open('own'), (error) => error === stopped)
  })

  it('is over when the attempt is, whatever the handler left open', async () => {
    const connections = own()
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    let kept: PostgresConnection | undefined
    const careless = handle(async (_, ctx) => {
      kept = await ctx.postgres('own')
      await kept.query('begin')
      kept.query('select pg_sleep(60)').catch(() => {})
      return ctx.orgId
    })
    const silent = () => {}
    startExecution(
      { job_id: JOB, org_id: OURS, payload: {}, timeout_seconds: null, predicted_p99_ms: null } as ClaimedJob,
      careless,
      {
        logFor: () => ({ debug: silent, info: silent, warn: silent, error: silent }),
        reportProgress: silent,
        saveCheckpoint: async () => {},
        fetch: () => assert.fail('no request'),
        sessionsFor: ({ job_id: jobId, org_id: orgId }, signal) =>
          createJobSessions({ connections, jobId, orgId, signal }),
        autoTimeout: 0,
        onError: assert.fail,
      },
      resolve,
    )
    assert.deepEqual(await promise, { kind: 'done', resultJson: JSON.stringify(OURS) })
    await untilNone()
    await assert.rejects(async () => kept?.query('select 1'), /^Error: The attempt has ended/)
  })
})

const listen = async (t: TestContext, server: Server): Promise<number> => {
  t.after(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}
