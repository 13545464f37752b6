import assert from 'node:assert/strict'
import { after, before, beforeEach, type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Query, Run } from '../../db/query.ts'
import { askToIsolate, reclaimExpiredLeases } from '../../db/queue/upkeep.ts'
import { createRedactor } from '../../functions/redaction.ts'
import { createCapacity } from '../../worker-runtime/capacity.ts'
import { createClaimPlanner } from '../../worker-runtime/claim-planner.ts'
import { createDatabase } from '../../worker-runtime/database.ts'
import { createExchanger, type Exchanger } from '../../worker-runtime/exchanger.ts'
import type { JobHandler } from '../../worker-runtime/handler-api.ts'
import { createHeldJobs, type HeldJobs } from '../../worker-runtime/held-jobs.ts'
import { createIsolation, type Isolation } from '../../worker-runtime/isolation.ts'
import { LEASE_SECONDS } from '../../worker-runtime/lease-book.ts'
import { createLeaseKeeper } from '../../worker-runtime/lease-keeper.ts'
import { createLogWriter } from '../../worker-runtime/log-writer.ts'
import { createOutcomeQueue } from '../../worker-runtime/outcome-queue.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  clearJobs,
  exchange,
  expireLeases,
  lead,
  makeSuspects,
  newJob,
  passLeaseOn,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, keepLog } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
const sqlError = (code: string): Error => Object.assign(new pg.DatabaseError(code, 0, 'error'), { code })

/** What a statement is about: logs, a claim, or outcomes, which are stored durably. */
type Sent = { session: 'durable' | 'relaxed' | 'logs'; name: string; text: string; query: Query<unknown> }

/**
 * An exchanger with real jobs on a real database, with someone in the line: what `tamper` throws is the answer, before
 * the statement is sent or, with `tamperAfter`, when it has been committed.
 */
const setUp = (
  t: TestContext,
  options: {
    handler: JobHandler
    slots?: number
    tamper?: (sent: Sent) => Promise<void> | void
    tamperAfter?: (sent: Sent) => void
    beforeEnds?: () => Promise<void>
    runDurable?: Run
    now?: () => number
  },
): {
  exchanger: Exchanger
  held: HeldJobs
  isolation: Isolation
  sent: Sent[]
  log: ReturnType<typeof keepLog>['log']
} => {
  const sent: Sent[] = []
  const { log, logger } = keepLog()
  const through =
    (session: Sent['session']): Run =>
    async <Row>(query: Query<Row>): Promise<Row[]> => {
      const statement = { session, name: query.name, text: JSON.stringify(query.values), query }
      sent.push(statement)
      await options.tamper?.(statement)
      const rows = await database.run(query)
      options.tamperAfter?.(statement)
      return rows
    }
  const logs = createLogWriter({ run: through('logs'), redactor: createRedactor(), onError: () => {} })
  const slots = options.slots ?? 10
  const capacity = createCapacity({ slots, cpuUnits: slots, memoryMb: 100_000 })
  const held: HeldJobs = createHeldJobs({
    handlers: new Map([['test', options.handler]]),
    capacity,
    tools: {
      logFor: logs.logFor,
      reportProgress: () => {},
      saveCheckpoint: async () => {},
      fetch: () => Promise.reject(),
      sessionsFor: () => assert.fail('no database'),
      autoTimeout: 10,
      onError: assert.fail,
    },
    logger,
    onEnded: (entry) => exchanger.record(entry),
    onFreed: () => exchanger.wake(),
    onLeft: () => {},
  })
  const planner = createClaimPlanner({
    types: ['test'],
    policy: 'learned',
    capacity,
    jobs: () => held,
    now: () => performance.now(),
  })
  const isolation = createIsolation({
    run: through('relaxed'),
    workerId: 'worker-1',
    types: ['test'],
    capacity,
    now: () => performance.now(),
  })
  const exchanger: Exchanger = createExchanger({
    workerId: 'worker-1',
    run: (query) => {
      if (!storesOutcomes(query)) return through('relaxed')(query)
      return (options.runDurable ?? through('durable'))(query)
    },
    jobs: held,
    planner,
    outcomes: createOutcomeQueue({
      jobs: held,
      logger,
      onRecorded: () => {},
      onLost: () => {},
      onError: () => {},
    }),
    isolation,
    beforeEnds: options.beforeEnds ?? logs.flush,
    onExchanged: planner.observe,
    onError: () => {},
    now: options.now,
  })
  t.after(() => exchanger.stop())
  return { exchanger, held, isolation, sent, log }
}

/** The fourth value has the ids of the jobs that ended. */
const storesOutcomes = ({ name, values }: Query<unknown>): boolean =>
  name === 'exchange' && values[3] !== '{}'

/** Whether a statement says that this job has completed. */
const completes = ({ session, text }: Sent, id: string | undefined): boolean =>
  session === 'durable' && text.includes(String(id)) && !text.includes('failed')

/** Throws what it is told to, once each. */
const once = (...errors: Error[]) => {
  const left = [...errors]
  return () => {
    const error = left.shift()
    if (error) throw error
  }
}

test('a passing error of the database does not change the outcome', async (t) => {
  const codes = ['57014', '08006', '40P01']
  for (const code of codes) {
    const [id] = await submit({ name: code })
    const fail = once(sqlError(code))
    const tamper = (sent: Sent) => {
      if (completes(sent, id)) fail()
    }
    const { exchanger } = setUp(t, { handler: handle(() => 'fine'), tamper })
    exchanger.start()
    const job = await jobs.untilStatus(id, 'completed')
    assert.deepEqual([job.result, job.attempts], ['fine', 1], code)
    await exchanger.stop()
  }
})

test('of many outcomes only the one that Postgres refuses is stored as failed', async (t) => {
  const ids = await submit({}, {}, {})
  const [, refused] = ids
  const tamper = (sent: Sent) => {
    if (completes(sent, refused)) throw sqlError('22P05')
  }
  const gate = Promise.withResolvers<void>()
  const { exchanger, held, log } = setUp(t, { handler: handle(() => gate.promise), tamper })
  exchanger.start()
  await waitFor('all to run', () => held.running() === 3)
  gate.resolve()
  await waitFor('all outcomes', async () => (await database.sql('select from finished_jobs')).length === 3)
  assert.deepEqual(await jobs.statuses(ids), ['completed', 'failed', 'completed'])
  assert.equal((await jobs.look(refused)).error?.code, 'unstorable_result')
  assert.deepEqual(held.held(), [])
  assert.deepEqual(
    log.filter(({ level }) => level === 'error'),
    [],
  )
})

test('an outcome that cannot be stored at all is given up, and the worker goes on', async (t) => {
  const [id] = await submit({ max_attempts: 1 })
  const tamper = ({ session, text }: Sent) => {
    if (session === 'durable' && text.includes(String(id))) throw sqlError('23514')
  }
  const { exchanger, held, log } = setUp(t, { handler: handle(() => 1), tamper })
  exchanger.start()
  await waitFor('it to be given up', () =>
    log.some(({ message }) => message === 'the outcome cannot be stored'),
  )
  assert.deepEqual(held.held(), [])
  const [next] = await submit({})
  exchanger.wake()
  await jobs.untilStatus(next, 'completed')
})

test('log lines are stored before the outcome, also when the first try fails', async (t) => {
  const [id] = await submit({ max_attempts: 1 })
  const fail = once(sqlError('57P01'))
  const tamper = ({ session }: Sent) => {
    if (session === 'logs') fail()
  }
  const handler = handle((_, { log }) => {
    log.info('on it')
    throw new Error('why it failed')
  })
  const { exchanger, sent } = setUp(t, { handler, tamper })
  exchanger.start()
  await jobs.untilStatus(id, 'failed')
  const lines = await database.sql('select message from job_logs order by id')
  assert.deepEqual(
    lines.map(({ message }) => message),
    ['on it', 'handler_error: why it failed'],
  )
  const order = sent.filter((one) => one.session !== 'relaxed').map(({ session }) => session)
  assert.deepEqual(order, ['logs', 'logs', 'durable'])
})

test('what stores outcomes waits for the disk, what only claims does not', async (t) => {
  const commits = async (query: Query<unknown>): Promise<unknown> => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    try {
      await client.query('begin; set local synchronous_commit = on')
      await client.query(query.text, [...query.values])
      const { rows } = await client.query('show synchronous_commit')
      await client.query('rollback')
      return rows[0].synchronous_commit
    } finally {
      await client.end()
    }
  }
  const [id] = await submit({})
  const modes: unknown[][] = []
  const { exchanger } = setUp(t, {
    handler: handle(() => 1),
    tamper: async ({ query, session }) =>
      void (session !== 'logs' && modes.push([session, await commits(query)])),
  })
  exchanger.start()
  await jobs.untilStatus(id, 'completed')
  assert.deepEqual(new Set(modes.map(String)), new Set(['relaxed,off', 'durable,on']))
})

test('outcomes that come while one is on its way go together in the next statement', async (t) => {
  await submit(...Array.from({ length: 10 }, () => ({})))
  const gate = Promise.withResolvers<void>()
  const { exchanger, held, sent } = setUp(t, { handler: handle(() => gate.promise) })
  exchanger.start()
  await waitFor('all to run', () => held.running() === 10)
  gate.resolve()
  await waitFor('all outcomes', async () => (await database.sql('select from finished_jobs')).length === 10)
  assert.ok(sent.filter(({ session }) => session === 'durable').length <= 2, `${sent.length}`)
})

test('an outcome whose answer got lost is stored once, and its worker goes on', async (t) => {
  const ids = await submit({ name: 'first' }, { name: 'second' })
  const [first, second] = ids
  const gates = new Map(['first', 'second'].map((name) => [name, Promise.withResolvers<void>()]))
  const names = new Map(ids.map((id, n) => [id, n === 0 ? 'first' : 'second']))
  const fail = once(sqlError('08006'))
  const { exchanger, held } = setUp(t, {
    handler: handle((_, { jobId }) => gates.get(names.get(jobId) ?? '')?.promise),
    tamperAfter: ({ session }) => {
      if (session === 'durable') fail()
    },
  })
  exchanger.start()
  await waitFor('both to run', () => held.running() === 2)
  gates.get('first')?.resolve()
  await waitFor('the first to be let go', () => held.held().length === 1)
  assert.deepEqual(await jobs.statuses(ids), ['completed', 'running'])
  assert.deepEqual(await jobs.eventsOf(first), ['ready', 'running', 'completed'])
  gates.get('second')?.resolve()
  await jobs.untilStatus(second, 'completed')
})

test('a stop waits for outcomes, also for one whose statement fails at that moment', async (t) => {
  const [id] = await submit({})
  const stopped = Promise.withResolvers<void>()
  let failed = false
  const tamper = (sent: Sent) => {
    if (!completes(sent, id) || failed) return
    failed = true
    exchanger.stop().then(stopped.resolve)
    throw sqlError('57P01')
  }
  const { exchanger } = setUp(t, { handler: handle(() => 1), tamper })
  exchanger.start()
  await stopped.promise
  assert.equal(await jobs.statusOf(id), 'completed')
})

test('an outcome that came too late is dropped, and said so once', async (t) => {
  const [id] = await submit({})
  const gate = Promise.withResolvers<void>()
  const { exchanger, held, log } = setUp(t, { handler: handle(() => gate.promise) })
  exchanger.start()
  await jobs.untilStatus(id, 'running')
  await passLeaseOn(database.sql, String(id))
  gate.resolve()
  await waitFor('it to be said', () => log.some(({ message }) => String(message).startsWith('lease lost')))
  await waitFor('it to be let go', () => held.held().length === 0)
  await exchanger.stop()
  assert.equal(log.filter(({ message }) => String(message).startsWith('lease lost')).length, 1)
  assert.equal(await jobs.statusOf(id), 'running', "it is someone else's")
})

test('outcomes wait for a locked table while their lease is kept alive, and no job runs twice', async (t) => {
  const ids = await submit({}, {}, {})
  const sibling = ids[2]
  const ran: string[] = []
  const [ending, running] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const handler = handle((_, { jobId }) => {
    ran.push(jobId)
    return jobId === sibling ? running.promise : ending.promise
  })
  let refused = 0
  const impatient = createDatabase({
    url: database.url,
    applicationName: 'test',
    maxConnections: 1,
    settings: { lock_timeout: '20' },
    onError: assert.fail,
  })
  t.after(() => impatient.close())
  const runDurable: Run = async (query) => {
    try {
      return await impatient.run(query)
    } catch (error) {
      refused++
      throw error
    }
  }
  const { exchanger, held } = setUp(t, { handler, runDurable })
  const keeper = createLeaseKeeper({
    run: database.run,
    held: () => held.held().map(({ job }) => job),
    leases: held.leases,
    onLost: held.lose,
    onError: assert.fail,
  })
  exchanger.start()
  await waitFor('all to run', () => held.running() === 3)
  const locker = new pg.Client({ connectionString: database.url })
  await locker.connect()
  t.after(() => locker.end())
  await locker.query('begin; lock table finished_jobs in access exclusive mode')
  ending.resolve()
  await waitFor('both to end', () => held.running() === 1)
  // As if the lock had been held for a minute.
  for (const entry of held.held()) entry.startedAtMs = performance.now() - 62_000
  await expireLeases(database.sql)
  keeper.start()
  await waitFor('a renewal and some tries', async () => {
    const [lease] = await database.sql('select from leases where expires_at > now()')
    return lease !== undefined && refused > 1
  })
  await keeper.stop()
  await locker.query('commit')
  await waitFor('both outcomes', async () => (await database.sql('select from finished_jobs')).length === 2)
  assert.deepEqual(await jobs.statuses(ids), ['completed', 'completed', 'running'])
  running.resolve()
  await jobs.untilStatus(sibling, 'completed')
  assert.deepEqual(ran.sort(), [...ids].sort())
})

test('a stop gives up on an outcome once its lease may have expired, but not while it is renewed', async (t) => {
  const [id] = await submit({})
  let laterMs = 0
  let tries = 0
  const tamper = (sent: Sent) => {
    if (!completes(sent, id)) return
    tries++
    throw sqlError('57P01')
  }
  const { exchanger, held } = setUp(t, {
    handler: handle(() => 1),
    tamper,
    now: () => performance.now() + laterMs,
  })
  exchanger.start()
  await waitFor('a first try', () => tries > 0)
  const token = String(held.held()[0]?.job.token)
  laterMs = LEASE_SECONDS * 1000
  held.leases.renewed([token], performance.now() + laterMs)
  let stopped = false
  const stop = exchanger.stop().then(() => {
    stopped = true
  })
  await waitFor('another try', () => tries > 1)
  assert.equal(stopped, false)
  laterMs *= 2
  await stop
  assert.equal(await jobs.statusOf(id), 'running', 'the watchdog finds it')
})

test('a worker asked to isolate finishes its jobs, runs suspects one by one, and then resumes', async (t) => {
  const suspects = await submit({}, {}, {})
  await makeSuspects(database)
  const ordinary = await submit({}, {})
  const gate = Promise.withResolvers<void>()
  const together: string[][] = []
  const running = new Set<string>()
  const handler = handle(async (_, { jobId }) => {
    running.add(jobId)
    together.push([...running])
    await (ordinary.includes(jobId) ? gate.promise : new Promise(setImmediate))
    running.delete(jobId)
  })
  const { exchanger, held, isolation } = setUp(t, { handler })
  await reportLive(database.run, { workerId: 'worker-1' })
  exchanger.start()
  await waitFor('the ordinary jobs', () => held.running() === 2)
  assert.deepEqual(await jobs.statuses(suspects), ['ready', 'ready', 'ready'], 'no ordinary claim takes them')

  await database.run(askToIsolate(await lead(database.run)))
  isolation.begin()
  exchanger.wake()
  const [late] = await submit({})
  exchanger.wake()
  await new Promise(setImmediate)
  assert.equal(held.running(), 2, 'neither a suspect nor another job has started')
  gate.resolve()
  await jobs.untilAll([...suspects, ...ordinary, String(late)], 'completed')
  for (const id of suspects)
    assert.deepEqual(
      together.filter((ids) => ids.includes(id)),
      [[id]],
    )
  assert.ok(together.findIndex(([id]) => id === late) > together.findIndex(([id]) => id === suspects[2]))
  const [worker] = await database.sql('select isolates from workers')
  assert.deepEqual(worker, { isolates: false })
})

test('a worker that is no longer asked to isolate stops draining', () => {
  let nowMs = 0
  const capacity = { cpuUnits: 1, memoryMb: 64 }
  const run: Run = () => assert.fail('nothing is claimed while the worker holds jobs')
  const isolation = createIsolation({ run, workerId: 'w', types: [], capacity, now: () => nowMs })
  assert.equal(isolation.isOn(), false)
  for (; nowMs < 30_000; nowMs += 1_000) {
    isolation.begin()
    assert.equal(isolation.isOn(), true)
  }
  nowMs += 10_000
  assert.equal(isolation.isOn(), false)
})

test('the late outcome of a lost attempt does not end the attempt that follows it in the same worker', async (t) => {
  const [again] = await submit({})
  const lost = Promise.withResolvers<void>()
  const lostHasEnded = Promise.withResolvers<void>()
  let attempts = 0
  const handler = handle(async (_, { jobId }) => {
    if (jobId !== again) return
    if (++attempts > 1) return new Promise(() => {})
    await lost.promise
    lostHasEnded.resolve()
  })
  let tampered = false
  const tamper = async ({ session }: Sent): Promise<void> => {
    if (session !== 'relaxed' || tampered || attempts === 0) return
    tampered = true
    // While this claim is on its way, the first attempt loses its lease and ends; the claim brings the job again.
    const term = await lead(database.run)
    await expireLeases(database.sql)
    await database.run(reclaimExpiredLeases(term, 10))
    lost.resolve()
    await lostHasEnded.promise
  }
  const { exchanger } = setUp(t, { handler, tamper })
  exchanger.start()
  await waitFor('the first attempt', () => attempts === 1)
  const [other] = await submit({})
  exchanger.wake()
  await jobs.untilStatus(other, 'completed')
  await waitFor('the second attempt', () => attempts === 2)
  const job = await jobs.look(again)
  assert.deepEqual([job.status, job.attempts], ['running', 2])
})

test('a job that is being given back is not lost when the others of its lease end first', async (t) => {
  const [, second] = await submit({}, {})
  const gate = Promise.withResolvers<void>()
  const { exchanger, held } = setUp(t, { handler: handle(() => gate.promise), slots: 1 })
  const { claimed } = await exchange(database.run, { claim: { limit: 2 } })
  held.accept(claimed, performance.now())
  // Nobody has told the database yet.
  assert.deepEqual(
    held.takeUnstarted(1).map(({ job_id }) => job_id),
    [second],
  )
  exchanger.start()
  await exchanger.claimNoMore()
  gate.resolve()
  await jobs.untilStatus(claimed[0]?.job_id, 'completed')
  await exchanger.stop()
  assert.equal(await jobs.statusOf(second), 'running')
  await expireLeases(database.sql)
  await database.run(reclaimExpiredLeases(await lead(database.run), 10))
  assert.deepEqual(await database.sql('select job_id from ready_jobs'), [{ job_id: second }])
})

test('an outcome does not pay for what is refused before it', async (t) => {
  const [id] = await submit({})
  const fail = once(sqlError('22P05'))
  const { exchanger } = setUp(t, { handler: handle(() => 'fine'), beforeEnds: async () => fail() })
  exchanger.start()
  await waitFor('its end', async () => (await database.sql('select from finished_jobs')).length === 1)
  const job = await jobs.look(id)
  assert.deepEqual([job.status, job.result], ['completed', 'fine'])
})

test('a job that waits here and is claimed here again runs once', async (t) => {
  const [, second] = await submit({}, {})
  const gate = Promise.withResolvers<void>()
  const ran: string[] = []
  const handler = handle(async (_, { jobId }) => {
    ran.push(jobId)
    await gate.promise
  })
  const { exchanger, held } = setUp(t, { handler, slots: 1 })
  await exchanger.claimNoMore()
  const { claimed } = await exchange(database.run, { claim: { limit: 2 } })
  held.accept(claimed, performance.now())
  await expireLeases(database.sql)
  await database.run(reclaimExpiredLeases(await lead(database.run), 10))
  const again = (await exchange(database.run, { claim: { limit: 2 } })).claimed
  held.accept(
    again.filter(({ job_id }) => job_id === second),
    performance.now(),
  )
  gate.resolve()
  await waitFor('an empty worker', () => held.running() + held.unstarted() === 0)
  assert.equal(ran.filter((id) => id === second).length, 1)
})

test('a stop does not wait for an outcome that turned out to be stored', async (t) => {
  const [id] = await submit({})
  const lose = once(sqlError('08006'))
  const { exchanger, held } = setUp(t, {
    handler: handle(() => new Promise(() => {})),
    tamperAfter: (sent) => {
      if (completes(sent, id)) lose()
    },
  })
  await submit({})
  exchanger.start()
  await waitFor('both to run', () => held.running() === 2)
  await exchanger.claimNoMore()
  const [first] = held.held()
  assert.ok(first)
  first.outcome = { kind: 'done', resultJson: null }
  first.ranMs = 5
  exchanger.record(first)
  const before = performance.now()
  await exchanger.stop()
  assert.ok(performance.now() - before < 10_000)
})

test('one that turned out slower waits for another, also if a worker has just begun', async (t) => {
  const ran: string[] = []
  await submit({ name: 'slowed' }, { name: 'steady', priority: 'low' })
  await database.sql(`update series set mean_log = ln(1000000) where name = 'slowed'`)
  const { exchanger } = setUp(t, {
    slots: 1,
    handler: handle(({ name }) => void ran.push(String(name))),
  })
  await database.sql(`update jobs set payload = jsonb_build_object('name', name)`)
  exchanger.start()
  await waitFor('both', async () => (await database.sql('select from finished_jobs')).length === 2)
  assert.deepEqual(ran, ['steady', 'slowed'])
})

test('outcomes that find no place in a statement go before more jobs do', async (t) => {
  await submit(...Array.from({ length: 2_300 }, () => ({})))
  const gate = Promise.withResolvers<void>()
  const readyBefore: number[] = []
  const { exchanger, held } = setUp(t, {
    handler: handle(() => gate.promise),
    slots: 1_100,
    tamper: async ({ session }) => {
      if (session === 'durable') readyBefore.push((await database.sql('select from ready_jobs')).length)
    },
  })
  exchanger.start()
  await waitFor('slots and more to be taken', () => held.held().length === 2_000)
  gate.resolve()
  await waitFor(
    'all outcomes',
    async () => (await database.sql('select from finished_jobs')).length === 2_300,
  )
  assert.deepEqual(readyBefore, [300, 300, 0])
})
