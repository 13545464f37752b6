import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { readExecutions } from '../../db/queries/learning.ts'
import type { Query, Run } from '../../db/query.ts'
import { parseWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { unpackOrgMemory } from '../../functions/prediction/model/org-memory.ts'
import { unpackMemory, unpackTypeMemory } from '../../functions/prediction/model/series-memory.ts'
import { createTermLearner } from '../../worker-runtime/learning/term-learner.ts'
import { useWasmBackend } from '../../worker-runtime/learning/wasm-backend.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  failed,
  lead,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
  timedOut,
} from '../support/jobs.ts'
import { predictionWith, runLessons, sampleWith } from '../support/lessons.ts'
import { waitFor } from '../support/wait-for.ts'
import { keepLog } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let run: Run

before(async () => {
  await useWasmBackend()
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  run = database.run
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.sql(`truncate models, accuracy_points, learning_state`)
  await database.sql(`insert into learning_state default values`)
})

const learnerOf = (term: string, by: Run = run, sharesEstimates = false) => {
  const { log, logger } = keepLog()
  return { ...createTermLearner({ run: by, term, logger, sharesEstimates }), log }
}
/** Until there is nothing more to do at once. */
const stepAll = async (learner: { step(): Promise<number> }): Promise<void> => {
  while ((await learner.step()) < 1_000);
}
/** And all is learned from: what a transaction elsewhere on this server holds back comes a moment later. */
const learnAll = (learner: { step(): Promise<number> }): Promise<unknown> =>
  waitFor('all to be learned', async () => {
    await stepAll(learner)
    const text = `select from executions e, learning_state s where (e.xid, e.id) > (s.xid, s.id)`
    return (await database.sql(text)).length === 0
  })
const state = async () => {
  const [row] = await database.sql<{
    learned: string
    by_source: Record<string, number>
    accuracy: { errors?: Record<string, number>; coverage?: number; mape?: number; executions?: number }
  }>('select * from learning_state')
  assert.ok(row)
  return { ...row, learned: Number(row.learned) }
}
const memoryOf = async (name: string) => {
  const [row] = await database.sql<{ memory: Buffer }>(
    'select memory from series_memories m join series s on s.id = m.series_id where s.name = $1',
    [name],
  )
  return row && unpackMemory(row.memory)
}
const versions = () =>
  database.sql<{ version: number; status: string; has_weights: boolean; parent: number | null }>(
    'select version, status, parent, weights is not null as has_weights from models order by version',
  )
const lessons = (count: number, ranMs: number, name = 'a job') =>
  Array.from({ length: count }, () => ({ name, ranMs }))

test('the first leader stores version 1, which answers the baseline', async () => {
  const learner = learnerOf(await lead(run))
  await learnAll(learner)
  assert.deepEqual(await versions(), [{ version: 1, status: 'champion', parent: null, has_weights: true }])
  const [row] = await database.sql<{ weights: Buffer }>('select weights from models')
  assert.ok(parseWeights(row?.weights ?? Buffer.alloc(0)).parameters.Wy.every((weight) => weight === 0))
  learner.dispose()
})

test('an execution is learned once, also if another leads between the two looks', async () => {
  const first = learnerOf(await lead(run, 'first'))
  await runLessons(run, tenant, [...lessons(3, 500, 'a'), ...lessons(2, 900, 'b')])
  await learnAll(first)
  await learnAll(first)
  assert.equal((await state()).learned, 5)
  const second = learnerOf(await lead(run, 'second'))
  await learnAll(second)
  await runLessons(run, tenant, lessons(1, 700, 'a'))
  await learnAll(second)
  const after = await state()
  assert.deepEqual([after.learned, after.by_source], [6, { lstm: 6 }])
  const memory = await memoryOf('a')
  assert.equal(memory?.seen, 4)
  assert.deepEqual(
    memory?.runs.map(({ log }) => Math.round(Math.exp(log))),
    [500, 500, 500, 700].map((ms) => Math.round(Math.exp(Math.round(Math.log(ms) * 1024) / 1024))),
  )
  first.dispose()
  second.dispose()
})

test('a former leader changes nothing, and learns no more', async () => {
  const former = learnerOf(await lead(run, 'former'))
  await learnAll(former)
  await lead(run, 'new')
  await runLessons(run, tenant, lessons(3, 500))
  const before = await state()
  await stepAll(former)
  await stepAll(former)
  assert.deepEqual(await state(), before)
  assert.equal(await memoryOf('a job'), undefined)
  former.dispose()
})

test('what could not be stored is stored later, once', async () => {
  let broken: 'before' | 'after' | undefined
  const unreliable: Run = async <Row>(query: Query<Row>) => {
    const breaks = query.name === 'store-learned' ? broken : undefined
    if (breaks === 'before') throw new Error('no connection')
    const rows = await run(query)
    if (breaks === 'after') throw new Error('connection lost')
    return rows
  }
  const isBroken = ({ message }: Error): boolean => /connection/.test(message)
  const learner = learnerOf(await lead(run), unreliable)
  for (const when of ['before', 'after'] as const) {
    await runLessons(run, tenant, lessons(2, 500))
    broken = when
    await waitFor('a failure', () => learner.step().then(() => false, isBroken))
    if (when === 'before')
      await assert.rejects(learner.step(), /connection/, 'it is sent again, first of all')
    broken = undefined
    await learnAll(learner)
  }
  assert.equal((await state()).learned, 4)
  assert.equal((await memoryOf('a job'))?.seen, 4)
  learner.dispose()
})

test('failed and cancelled attempts teach nothing, and a timeout is a lower bound', async () => {
  const prediction = predictionWith(sampleWith())
  await seedJobs(
    run,
    tenant,
    Array.from({ length: 3 }, () => newJob({ name: 'x', prediction })),
  )
  const [a, b, c] = await claim(run)
  assert.ok(a && b && c)
  await end(run, failed(a), timedOut(b, 60_000), completed(c, null, 1_000))
  await database.sql(`insert into executions (org_id, series_id, outcome, job_ids, ran_ms)
    select org_id, id, 'cancelled', array[gen_random_uuid()], array[5] from series`)
  const learner = learnerOf(await lead(run))
  await learnAll(learner)
  const { learned, accuracy } = await state()
  assert.equal(learned, 2, 'one that completed and one that timed out')
  assert.equal(accuracy.executions, 1, 'how long the other would have run nobody knows')
  const memory = await memoryOf('x')
  assert.deepEqual([memory?.seen, memory?.runs.length], [1, 1])
  assert.equal(memory?.state.length, 128, 'the network has seen both')
  const [org] = await database.sql<{ memory: Buffer }>('select memory from org_memories')
  assert.ok(unpackOrgMemory(org?.memory ?? Buffer.alloc(0)).general.some(({ weight }) => weight === 1))
  learner.dispose()
})

test('executions without a sample only count', async () => {
  await runLessons(run, tenant, [{ ranMs: 500, sample: null }, { ranMs: 500 }])
  const learner = learnerOf(await lead(run))
  await learnAll(learner)
  assert.equal((await state()).learned, 1)
  const memory = await memoryOf('a job')
  assert.deepEqual([memory?.seen, memory?.runs.length], [2, 1])
  learner.dispose()
})

test('the types of organisations are kept, and go on in the next term; so do shared types', async () => {
  const first = learnerOf(await lead(run), run, true)
  await runLessons(
    run,
    tenant,
    [100, 200, 300].map((ranMs) => ({ ranMs })),
  )
  await learnAll(first)
  const types = () =>
    database.sql<{ type: string; runs: number; median: number }>(
      `select type, runs::int, round(exp(median_log))::int as median from type_estimates order by type`,
    )
  assert.deepEqual(await types(), [{ type: 'test', runs: 3, median: 200 }])
  const second = learnerOf(await lead(run), run, true)
  await runLessons(
    run,
    tenant,
    [400, 500].map((ranMs) => ({ ranMs })),
  )
  await learnAll(second)
  assert.deepEqual(
    (await types()).map(({ runs }) => runs),
    [5],
  )
  const [row] = await database.sql<{ runs: string; median: number; drift_log: number; memory: Buffer }>(
    'select runs, round(exp(median_log))::int as median, drift_log, memory from org_type_estimates',
  )
  assert.deepEqual([Number(row?.runs), row?.median], [5, 300])
  assert.ok((row?.drift_log ?? 0) < -0.5, 'all ran faster than predicted')
  const newest = unpackTypeMemory(row?.memory ?? Buffer.alloc(0)).newest.map(({ log }) => Math.exp(log))
  assert.deepEqual(
    newest.map((ms) => Math.round(ms / 100)),
    [1, 2, 3, 4, 5],
  )
  const third = learnerOf(await lead(run))
  await learnAll(third)
  assert.deepEqual(await types(), [], 'nothing is left where estimates are private')
  for (const learner of [first, second, third]) learner.dispose()
})

test('only what all transactions before have ended is read', async () => {
  await runLessons(run, tenant, lessons(1, 500))
  await database.sql(`insert into executions (xid, org_id, series_id, outcome, job_ids, ran_ms)
    select '999999999', org_id, id, 'completed', array[gen_random_uuid()], array[5] from series`)
  const read = await waitFor('the first', async () => {
    const rows = await run(readExecutions({ xid: '0', id: '0' }, 10))
    return rows.length > 0 && rows
  })
  assert.equal(read.length, 1)
})

test('a series that is forgotten meanwhile is left out', async () => {
  await runLessons(run, tenant, [...lessons(1, 500, 'gone'), ...lessons(1, 500, 'here')])
  const learner = learnerOf(await lead(run), async (query) => {
    if (query.name === 'store-learned')
      await database.sql(`with j as (delete from jobs) delete from series where name = 'gone'`)
    return run(query)
  })
  await learnAll(learner)
  assert.equal(await memoryOf('gone'), undefined)
  assert.equal((await memoryOf('here'))?.seen, 1)
  learner.dispose()
})

test('weights that cannot be read give way to the newest that can, else to fresh ones', async () => {
  const first = learnerOf(await lead(run))
  await learnAll(first)
  first.dispose()
  await database.sql(`update models set status = 'retired'`)
  await database.sql(`insert into models (version, parent, status, weights, trained_on) values
    (2, 1, 'rolled_back', '\\x00', 10), (7, 1, 'champion', '\\x5345', 10)`)
  const second = learnerOf(await lead(run))
  await learnAll(second)
  second.dispose()
  assert.deepEqual(
    (await versions()).map(({ version, status }) => [version, status]),
    [
      [1, 'champion'],
      [2, 'rolled_back'],
      [7, 'retired'],
    ],
  )
  assert.ok(second.log.some(({ message, version }) => message === 'model cannot be read' && version === 7))
  await database.sql(`update models set weights = '\\x00'`)
  const third = learnerOf(await lead(run))
  await learnAll(third)
  third.dispose()
  const champion = (await versions()).filter(({ status }) => status === 'champion')
  assert.deepEqual(champion, [{ version: 8, status: 'champion', parent: null, has_weights: true }])
})

test('what another release has left of a series is begun anew', async () => {
  const first = learnerOf(await lead(run))
  await runLessons(run, tenant, lessons(2, 500))
  await learnAll(first)
  first.dispose()
  await database.sql(`update series_memories set memory = '\\x01000210000000000000000000'`)
  const second = learnerOf(await lead(run))
  await runLessons(run, tenant, lessons(1, 500))
  await learnAll(second)
  assert.equal((await memoryOf('a job'))?.runs.length, 1)
  second.dispose()
})

test('the accuracy is a point of the learning curve from the first 200 executions on, and then every hour', async () => {
  const points = () =>
    database.sql(
      `select (accuracy -> 'executions')::int as executions, (accuracy -> 'coverage')::float8 as coverage, model_version
      from accuracy_points order by at`,
    )
  const learner = learnerOf(await lead(run))
  // Of jobs that look alike only a few are learned from.
  const unlike = (count: number, ranMs: number) =>
    Array.from({ length: count }, (_, n) => ({ name: `job ${n}`, ranMs }))
  await runLessons(run, tenant, unlike(90, 500))
  await learnAll(learner)
  assert.deepEqual(await points(), [])
  assert.equal((await state()).accuracy.executions, 90)
  await runLessons(run, tenant, [
    ...unlike(100, 500),
    ...lessons(10, 50_000).map((one, n) => ({ ...one, name: `slow ${n}` })),
  ])
  await learnAll(learner)
  assert.deepEqual((await points())[0], { executions: 200, coverage: 0.95, model_version: 1 })
  const known = (await points()).length
  await runLessons(run, tenant, lessons(1, 500))
  learner.dispose()
  await database.sql(`update accuracy_points set at = at - interval '2 hours'`)
  const next = learnerOf(await lead(run))
  await learnAll(next)
  assert.equal((await points()).length, known + 1)
  next.dispose()
})

/** What the baseline cannot know: an input decides whether a job takes long. */
const secret = (random: () => number) => {
  const long = random() < 0.5
  const x = sampleWith().x.map((_, n) => (n === 0 ? (long ? 1 : -1) : 0))
  return { ranMs: long ? 3_000 : 300, sample: sampleWith({ x }) }
}
const source = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}
/** Until a version has the status that it should get. */
const teachUntil = async (
  status: string,
  learner: { step(): Promise<number> },
  make: () => ReturnType<typeof secret>,
): Promise<void> => {
  for (let n = 0; n < 5; n++) {
    const batch = Array.from({ length: 400 }, (_, k) => ({ ...make(), name: `job ${k % 40}` }))
    await runLessons(run, tenant, batch)
    await learnAll(learner)
    if ((await versions()).some((one) => one.status === status)) return
  }
  assert.fail(`${JSON.stringify(await versions())}: none is ${status}`)
}

test('a better version is promoted, one that turns out worse rolled back, and no number is given twice', async () => {
  const random = source(5)
  const first = learnerOf(await lead(run))
  await teachUntil('retired', first, () => secret(random))
  const promoted = await versions()
  const champion = promoted.find(({ status }) => status === 'champion')
  assert.ok(champion && champion.version > 1 && champion.has_weights, JSON.stringify(promoted))
  assert.equal(promoted.filter(({ status }) => status === 'champion').length, 1)
  assert.ok(
    first.log.some(({ message, version }) => message === 'model promoted' && version === champion.version),
  )
  const [row] = await database.sql<{ evaluation: Record<string, unknown>; trained_on: string }>(
    `select evaluation, trained_on from models where status = 'champion'`,
  )
  assert.deepEqual(Object.keys(row?.evaluation ?? {}).sort(), [
    'after',
    'against',
    'before',
    'executions',
    'kind',
    'z',
  ])
  assert.ok(Number(row?.trained_on) >= 100)
  for (const { status, has_weights } of promoted) assert.equal(has_weights, status !== 'rejected')
  const points = await database.sql<{ accuracy: { executions: number } }>(
    'select accuracy from accuracy_points',
  )
  assert.ok(points.length >= 1 && points.every(({ accuracy }) => accuracy.executions > 0))
  first.dispose()

  // Another leads; and from now on the input means the opposite, which only the newest version takes for granted.
  const before = await versions()
  const second = learnerOf(await lead(run))
  await teachUntil('rolled_back', second, () => {
    const { ranMs, sample } = secret(random)
    return { sample, ranMs: ranMs === 300 ? 3_000 : 300 }
  })
  const after = await versions()
  assert.equal(after.filter(({ status }) => status === 'champion').length, 1)
  assert.ok(second.log.some(({ message }) => message === 'model rolled back'))
  for (const { version } of after.slice(before.length)) {
    assert.ok(version > Math.max(...before.map((one) => one.version)), `version ${version} is new`)
  }
  second.dispose()
})
