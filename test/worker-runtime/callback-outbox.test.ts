import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import type { Query, Run } from '../../db/query.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { deleteExpired } from '../../db/retention/retention.ts'
import { createCallbackDuty } from '../../worker-runtime/callbacks/duty.ts'
import { createDatabase, type Database } from '../../worker-runtime/database.ts'
import type { Duty } from '../../worker-runtime/duties.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { jobInState } from '../support/job-in-state.ts'
import { clearJobs, lead, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { keepLog, startWorker } from '../support/worker.ts'

const HOOK = 'https://example.com/hooks'
const LATER = '2999-01-01T00:00:00Z'

let database: TestDatabase
let connections: Database
let tenant: Tenant
let term: string

before(async () => {
  database = await createTestDatabase()
  connections = createDatabase({
    url: asLogin(database.url, 'workers'),
    applicationName: 'callbacks',
    maxConnections: 8,
    onError: () => {},
  })
})
after(async () => {
  await connections.close()
  await database.drop()
})
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.sql('truncate callback_endpoints')
  tenant = await seedTenant(database.run)
  term = await lead(database.run)
})

const createDuty = (overrides: Partial<Database> = {}): Duty & { log: Record<string, unknown>[] } => {
  const { log, logger } = keepLog()
  const { run, transaction } = { ...connections, ...overrides }
  return { ...createCallbackDuty({ run, transaction, logger }), log }
}

/** Steps until it rests. */
const work = async (duty: Duty, inTerm = term): Promise<void> => {
  while ((await duty.step(inTerm)) === 0);
}

/** Steps until as many were told: transactions elsewhere on the server hold the horizon back for a moment. */
const untilTold = (duty: Duty, count: number): Promise<string[]> =>
  waitFor(`${count} callbacks`, async () => {
    await work(duty)
    const ids = await told()
    return ids.length >= count && ids
  })

/** The jobs that were told of, in the order of their callbacks. */
const told = async (): Promise<string[]> => {
  const rows = await database.sql<{ id: string }>(
    `select triggered_by ->> 'job_id' as id from jobs where type = 'callback' order by id`,
  )
  return rows.map(({ id }) => id)
}

const endSome = async (count: number): Promise<string[]> => {
  const made = Array.from({ length: count }, () => newJob({ callback_url: HOOK, run_at: LATER }))
  const ids = await seedJobs(database.run, tenant, made)
  await database.run(cancelJobs(tenant.orgId, ids))
  return ids
}

test('of ten thousand jobs that end with one statement, those that ask for it are told of, each once', async () => {
  const made = Array.from({ length: 10_000 }, (_, n) =>
    newJob({ callback_url: n < 500 || n >= 9_500 ? HOOK : null, run_at: LATER }),
  )
  const ids = await seedJobs(database.run, tenant, made)
  await database.run(cancelJobs(tenant.orgId, ids))
  const [groups] = await database.sql(
    `select count(*)::int from job_event_groups where states @> '{cancelled}'`,
  )
  assert.deepEqual(groups, { count: 1 }, 'more than a page has room for')
  const asking = made.flatMap(({ id, callback_url }) => (callback_url ? [id] : []))
  const duty = createDuty()
  assert.deepEqual((await untilTold(duty, asking.length)).toSorted(), asking.toSorted())
  await work(duty)
  assert.equal((await told()).length, asking.length)
})

test('many URLs for each of many jobs are told in parts, and none is left out', async () => {
  await database.sql(
    `insert into callback_endpoints (org_id, id, url, events, created_at)
    select $1, gen_random_uuid(), 'https://example.com/' || n, '{job.cancelled}', '2020-01-01'
    from generate_series(1, 20) n`,
    [tenant.orgId],
  )
  const ids = await endSome(30)
  const counts = Map.groupBy(await untilTold(createDuty(), 30 * 21), (id) => id)
  assert.deepEqual([...counts.keys()].toSorted(), ids.toSorted())
  assert.deepEqual([...new Set([...counts.values()].map(({ length }) => length))], [21])
})

test('two that lead at the same time tell each event once', async () => {
  const duties = [createDuty(), createDuty()]
  for (let round = 1; round <= 5; round++) {
    await Promise.all([endSome(300), ...duties.map((duty) => work(duty))])
    await Promise.all(duties.map((duty) => untilTold(duty, 300 * round)))
  }
  const ids = await told()
  assert.deepEqual([ids.length, new Set(ids).size], [1500, 1500])
})

test('who leads no more tells nothing, and the next one does', async () => {
  const former = createDuty()
  await work(former)
  const [id] = await endSome(1)
  const next = await lead(database.run)
  await work(former)
  await work(former)
  await work(createDuty())
  assert.deepEqual(await told(), [], 'in the term that is over')
  term = next
  assert.deepEqual(await untilTold(createDuty(), 1), [id])
})

test('what goes wrong in the middle is told afterwards, and once', async () => {
  const ids = await endSome(2)
  const breaking: Database['transaction'] = (work) =>
    connections.transaction(async (run) => {
      await work(run)
      throw new Error('The connection broke.')
    })
  await assert.rejects(
    waitFor('an event', () => work(createDuty({ transaction: breaking })), 500),
    /in vain|broke/,
  )
  assert.deepEqual(await told(), [])

  // The commit was not heard of, but it was one.
  const deaf: Database['transaction'] = async (work) => {
    await connections.transaction(work)
    throw new Error('The connection broke.')
  }
  let transaction = deaf
  const duty = createDuty({ transaction: (work) => transaction(work) })
  await waitFor('the loss', () =>
    work(duty).then(
      () => false,
      () => true,
    ),
  )
  transaction = connections.transaction
  assert.deepEqual((await untilTold(duty, 2)).toSorted(), ids.toSorted())
  await work(duty)
  assert.equal((await told()).length, 2)
})

test('an event that the database refuses keeps no other from being told', async () => {
  const urls = ['https://a.example/', 'https://refused.example/', 'https://b.example/', 'https://c.example/']
  const made = urls.map((url) => newJob({ callback_url: url, run_at: LATER }))
  const ids = await seedJobs(database.run, tenant, made)
  await database.sql(
    `alter table jobs add constraint refused check (type <> 'callback' or payload ->> 'url' <> '${urls[1]}')`,
  )
  await database.run(cancelJobs(tenant.orgId, ids))
  const duty = createDuty()
  const [, refused] = ids
  const others = ids.filter((id) => id !== refused)
  assert.deepEqual((await untilTold(duty, 3)).toSorted(), others.toSorted())
  await work(duty)
  await database.sql('alter table jobs drop constraint refused')
  assert.equal((await told()).length, 3)
  const [line] = duty.log.filter(({ level }) => level === 'error')
  assert.deepEqual([line?.message, line?.job_id], ['callback refused', refused])
})

/** A transaction that stays open. */
const openTransaction = async (): Promise<{ run: Run; commit(): Promise<void> }> => {
  const client = new pg.Client({ connectionString: asLogin(database.url, 'both') })
  await client.connect()
  await client.query('begin')
  const run: Run = async <Row>({ text, values }: Query<Row>) =>
    (await client.query(text, [...values])).rows as Row[]
  return {
    run,
    commit: async () => {
      await client.query('commit')
      await client.end()
    },
  }
}

test('an event that commits late is not passed over', async () => {
  const duty = createDuty()
  const [late, soon] = await seedJobs(database.run, tenant, [
    newJob({ callback_url: HOOK, run_at: LATER }),
    newJob({ callback_url: HOOK, run_at: LATER }),
  ])
  const slow = await openTransaction()
  await slow.run(cancelJobs(tenant.orgId, [late ?? '']))
  await database.run(cancelJobs(tenant.orgId, [soon ?? '']))
  await work(duty)
  assert.deepEqual(await told(), [], 'the later one waits for the earlier')
  await slow.commit()
  assert.deepEqual(await untilTold(duty, 2), [late, soon])
})

test('a cursor that came with a dump of another server begins at the present', async () => {
  await endSome(3)
  await database.sql(`update job_event_groups set xid = (xid::text::bigint + 1000000)::text::xid8`)
  await database.sql(`update event_cursors set xid = (xid::text::bigint + 2000000)::text::xid8`)
  const duty = createDuty()
  await work(duty)
  assert.match(String(duty.log[0]?.message), /callbacks begin at the present/)
  const fresh = await endSome(2)
  assert.deepEqual((await untilTold(duty, 2)).toSorted(), fresh.toSorted())

  // One day this server comes to the numbers that the others have.
  await database.sql(
    `update job_event_groups set xid = '3' where xid > pg_snapshot_xmax(pg_current_snapshot())`,
  )
  await database.sql(`update event_cursors set xid = '2'`)
  const [cursor] = await database.sql(`select foreign_id from event_cursors where reader = 'callbacks'`)
  assert.ok(Number(cursor?.foreign_id) > 0)
  await work(createDuty())
  assert.equal((await told()).filter((id) => !fresh.includes(id)).length, 0)
})

test('a job that was retried before it was told of is told of as it ended then', async () => {
  const id = await jobInState(database.run, tenant, 'failed', { callback_url: HOOK })
  await database.run(retryJobs(tenant.orgId, [id]))
  await untilTold(createDuty(), 1)
  const [row] = await database.sql<{ data: Record<string, unknown> }>(
    `select payload -> 'body' -> 'data' as data from jobs where type = 'callback'`,
  )
  assert.deepEqual(
    [row?.data.status, row?.data.error, row?.data.attempts],
    ['failed', { code: 'broken', message: 'It broke.' }, 1],
  )
})

test('a callback has the fairness key of the job that it tells of', async () => {
  const keys = ['customer-42', null]
  const made = keys.map((fairness_key) => newJob({ callback_url: HOOK, run_at: LATER, fairness_key }))
  const ids = await seedJobs(database.run, tenant, made)
  await database.run(cancelJobs(tenant.orgId, ids))
  await untilTold(createDuty(), 2)
  const rows = await database.sql(
    `select triggered_by ->> 'job_id' as id, fairness_key from jobs where type = 'callback' order by id`,
  )
  const expected = made.map(({ id, fairness_key }) => ({ id, fairness_key }))
  assert.deepEqual(
    rows,
    expected.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  )
})

test('while nobody wants to know, the cursor moves on without a look at the events', async () => {
  const ids = await seedJobs(database.run, tenant, [newJob({ run_at: LATER })])
  await database.run(cancelJobs(tenant.orgId, ids))
  const duty = createDuty()
  await waitFor('all transactions on the server so far', async () => {
    const text = 'select max(xid) < pg_snapshot_xmin(pg_current_snapshot()) as over from job_event_groups'
    return (await database.sql(text))[0]?.over
  })
  await work(duty)
  await database.sql(
    `insert into callback_endpoints (org_id, id, url, events, created_at) values ($1, gen_random_uuid(), $2, '{job.cancelled}', '2020-01-01')`,
    [tenant.orgId, HOOK],
  )
  const [id] = await endSome(1)
  assert.deepEqual(await untilTold(duty, 1), [id])
})

test('URLs that were only kept because they are disabled are forgotten in time', async () => {
  await database.sql(
    `insert into callback_endpoints (org_id, id, url, events, disabled_at) values
      ($1, gen_random_uuid(), 'https://old.example/', '{}', now() - interval '31 days'),
      ($1, gen_random_uuid(), 'https://new.example/', '{}', now() - interval '29 days'),
      ($1, gen_random_uuid(), 'https://endpoint.example/', '{job.failed}', now() - interval '31 days')`,
    [tenant.orgId],
  )
  const forget = (inTerm: string) =>
    connections.run(deleteExpired('disabled_urls', { term: inTerm, days: 30, limit: 10 }))
  await forget('0')
  const urls = async () =>
    (await database.sql('select url from callback_endpoints')).map(({ url }) => url).sort()
  assert.equal((await urls()).length, 3, 'not in a term that is over')
  await forget(term)
  assert.deepEqual(await urls(), ['https://endpoint.example/', 'https://new.example/'])
})

test('a leader that stands still in the middle holds up the next one only for a moment', async () => {
  await endSome(1)
  const holder = new pg.Client(database.url)
  await holder.connect()
  await holder.query('begin')
  await holder.query(`select from event_cursors where reader = 'callbacks' for update`)
  const worker = await startWorker(database.url)
  try {
    await waitFor('it to wait for the cursor', async () => {
      const [waiting] = await database.sql(
        `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`,
        [`smartqueue ${worker.id}`],
      )
      return waiting
    })
    worker.freeze()
    await holder.query('commit')
    const isFree = async () => {
      const [cursor] = await database.sql(
        `select from event_cursors where reader = 'callbacks' for update skip locked`,
      )
      return cursor
    }
    await waitFor('it to have the cursor', async () => !(await isFree()))
    await waitFor('the cursor to be free', isFree)
  } finally {
    worker.unfreeze()
    await holder.end()
    await worker.stop()
  }
})
