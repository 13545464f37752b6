import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import {
  IDLE_IN_TRANSACTION_TIMEOUT_MS,
  LOCK_TIMEOUT_MS,
  longestTryMs,
  MAX_STATEMENTS,
  PATIENCE_MS,
  STATEMENT_TIMEOUT_MS,
} from '../../db/rules/timeouts.ts'
import { withClient } from '../../worker-runtime/migrate.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { type BreakableProxy, startBreakableProxy } from '../support/breakable-proxy.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let network: BreakableProxy
let edge: Edge
let account: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  network = await startBreakableProxy(database.url)
  const databaseUrl = Object.assign(new URL(database.url), { port: new URL(network.url).port }).href
  edge = await startEdge({ databaseUrl })
  account = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  network.stop()
  await database.drop()
})

const submit = (key?: string): Promise<Answer> =>
  edge.request('POST', '/jobs', {
    json: { name: 'n', type: 'test', payload: {} },
    token: account.token,
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
  })

const countJobs = async (): Promise<number> => (await database.sql('select from jobs')).length

/** Applies to sessions that the functions open from now on. */
const configure = async (setting: string): Promise<void> => {
  const name = new URL(database.url).pathname.slice(1)
  await database.sql(`alter role test_functions in database ${name} ${setting}`)
  await database.sql(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where datname = current_database() and usename = 'test_functions'`,
  )
}

const waitsFor = (lock: string) => async (): Promise<boolean> =>
  (
    await database.sql(
      `select from pg_stat_activity where datname = current_database() and usename = 'test_functions' and wait_event = $1`,
      [lock],
    )
  ).length > 0

test('Postgres times out before the functions do and leaves time for a second try', async () => {
  assert.ok(IDLE_IN_TRANSACTION_TIMEOUT_MS < LOCK_TIMEOUT_MS)
  assert.ok(LOCK_TIMEOUT_MS < STATEMENT_TIMEOUT_MS)
  assert.ok(longestTryMs(MAX_STATEMENTS) <= PATIENCE_MS)
  assert.ok(LOCK_TIMEOUT_MS + longestTryMs(3) <= PATIENCE_MS, 'a submission is retried after a lock timeout')
  await withClient(asLogin(database.url, 'functions'), async (client) => {
    const { rows } = await client.query(
      `select setting from pg_settings
       where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')
       order by name`,
    )
    const timeouts = [IDLE_IN_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS]
    assert.deepEqual(
      rows.map(({ setting }) => Number(setting)),
      timeouts,
    )
  })
})

test('a session left idle in a transaction is terminated, and requests waiting for it succeed', async () => {
  await configure(`set idle_in_transaction_session_timeout = '1s'`)
  await withClient(asLogin(database.url, 'functions'), async (client) => {
    await client.query('begin')
    await client.query('lock table smartqueue.idempotency_keys in exclusive mode')
    const submitted = submit('held-up')
    // A session that runs queries is not idle.
    const waiting = `select from pg_locks where relation = 'smartqueue.idempotency_keys'::regclass and not granted`
    await waitFor('the submission to wait', async () => (await client.query(waiting)).rowCount)
    assert.equal((await submitted).status, 201)
    await assert.rejects(client.query('commit'))
  })
})

test('after a lost response the same idempotency key finds the committed job', async () => {
  const before = await countJobs()
  await database.sql(`
    create function wait_at_commit() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(22); return null; end $$;
    create constraint trigger wait_at_commit after insert on jobs
      deferrable initially deferred for each row execute function wait_at_commit()`)
  const answer = await withClient(database.url, async (client) => {
    await client.query('select pg_advisory_lock(22)')
    const submitted = submit('lost')
    await waitFor('the commit to wait', waitsFor('advisory'))
    network.break()
    return submitted
  })
  assertProblem(answer, 503, 'outcome-unknown')
  assert.match(
    answer.body.detail,
    /may or may not have been committed\. Repeat it with the same Idempotency-Key/,
  )
  await waitFor('the commit', async () => (await countJobs()) === before + 1)
  network.mend()
  await database.sql('drop trigger wait_at_commit on jobs')
  const again = await submit('lost')
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true'])
  assert.equal(await countJobs(), before + 1)
})

test('a request that waits for a locked table gets 503 and is not committed after the lock is released', async () => {
  await configure(`set lock_timeout = '50ms'`)
  const before = await countJobs()
  await withClient(database.url, async (client) => {
    await client.query('begin')
    await client.query('lock table jobs in access exclusive mode')
    const answers = await Promise.all([submit(), submit('locked'), submit()])
    for (const answer of answers) {
      assertProblem(answer, 503, 'database-unavailable')
      assert.match(answer.body.detail, /waited too long for a lock\. Nothing was committed\./)
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    const list = await edge.request('GET', '/jobs', { token: account.token })
    assertProblem(list, 503, 'database-unavailable')
    assert.equal(await waitsFor('relation')(), false, 'no backend is still waiting')
    await client.query('commit')
  })
  assert.equal(await countJobs(), before)
  assert.equal((await submit('locked')).status, 201)
  assert.equal(await countJobs(), before + 1)
  await configure('reset lock_timeout')
})

test('on a full disk requests get 503 with the reason, and the functions are not ready', async () => {
  // A full disk and a limit on temporary files fail in the same place.
  await configure('set temp_file_limit = 0')
  const limited = await edge.request('GET', '/readyz')
  assertProblem(limited, 503, 'not-ready')
  assert.match(limited.body.detail, /configured limit/)
  await configure('reset temp_file_limit')
  assert.equal((await edge.request('GET', '/readyz')).status, 200)

  await database.sql(`
    create function fail_to_extend() returns trigger language plpgsql as
      $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
    create trigger fail_to_extend before insert on jobs execute function fail_to_extend()`)
  const answer = await submit()
  assertProblem(answer, 503, 'database-unavailable')
  assert.match(answer.body.detail, /The database's disk is full\. Nothing was committed\./)
  const ready = await edge.request('GET', '/readyz')
  assertProblem(ready, 503, 'not-ready')
  assert.equal(ready.body.detail, "The database's disk is full.")
  await database.sql('drop trigger fail_to_extend on jobs')
})
