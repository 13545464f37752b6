import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Run } from '../../db/query.ts'
import { createFaults } from '../../functions/prediction/faults.ts'
import { createInputCache } from '../../functions/prediction/inputs.ts'
import { joinParts } from '../../functions/prediction/job-predictions.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { createModelStore } from '../../functions/prediction/model-store.ts'
import { createTermLearner } from '../../worker-runtime/learning/term-learner.ts'
import { useWasmBackend } from '../../worker-runtime/learning/wasm-backend.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { claim, completed, end, lead, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { keepLog } from '../support/worker.ts'

let database: TestDatabase
let run: Run
const tenants: Record<string, Tenant> = {}
let random: () => number

const open = async (): Promise<void> => {
  random = createRandom(7)
  database = await createTestDatabase()
  run = database.run
  for (const name of ['ada', 'bob', 'eve', 'mallory', 'newcomer']) tenants[name] = await seedTenant(run)
}
const reopen = async (): Promise<void> => {
  await database.drop()
  await open()
}
before(useWasmBackend)
before(open)
after(() => database.drop())

type Job = { name: string; ranMs: number }

/** As the edge does it, by a predictor that has just been loaded: first without the network, which that starts to load. */
const predictBoth = async (who: string, names: readonly string[]) => {
  const { orgId } = tenants[who] ?? assert.fail()
  const held: Promise<unknown>[] = []
  const asking = { run, orgId, hold: (work: Promise<unknown>) => void held.push(work) }
  const faults = createFaults(run)
  // On a busy machine the inputs may take longer than the edge would wait for them.
  const inputs = createInputCache({ patienceMs: 60_000 })
  const predictions = joinParts({ inputs, models: createModelStore({ run, faults }), faults, now: Date.now })
  const jobs = names.map((name) => ({ ...JOB, name }))
  const without = await predictions.predict(jobs, asking)
  await Promise.all(held)
  return { without, shipped: await predictions.predict(jobs, asking) }
}

const predict = async (who: string, names: readonly string[]) => (await predictBoth(who, names)).shipped

const JOB = {
  ...{
    type: 'test',
    priority: 'normal' as const,
    payload: {},
    timeoutSeconds: null,
    cpuUnits: 1,
    memoryMb: 64,
  },
  ...{ runAtMs: null, parents: [] },
}

/** They are submitted together and end together. */
const runJobs = async (who: string, jobs: readonly Job[]): Promise<void> => {
  const tenant = tenants[who] ?? assert.fail()
  const predictions = await predict(
    who,
    jobs.map(({ name }) => name),
  )
  const stored = jobs.map(({ name }, n) => newJob({ name, prediction: predictions[n] ?? null }))
  const ids = await seedJobs(run, tenant, stored)
  const runtimes = new Map(ids.map((id, n) => [id, jobs[n]?.ranMs ?? 0]))
  for (let left = ids.length; left > 0; ) {
    const claimed = await claim(run, 'worker-1', left)
    assert.ok(claimed.length > 0)
    await end(run, ...claimed.map((job) => completed(job, null, runtimes.get(job.job_id))))
    left -= claimed.length
  }
}

const createLearner = async (sharesEstimates = false) => {
  const learner = createTermLearner({ run, term: await lead(run), logger: keepLog().logger, sharesEstimates })
  const learn = async (): Promise<void> => {
    await waitFor('all to be learned', async () => {
      while ((await learner.step()) < 1_000);
      const rows = await database.sql(
        `select from smartqueue.executions e, smartqueue.learning_state s where (e.xid, e.id) > (s.xid, s.id)`,
      )
      return rows.length === 0
    })
  }
  return { learn, dispose: learner.dispose }
}

const learnAll = async (sharesEstimates = false): Promise<void> => {
  const learner = await createLearner(sharesEstimates)
  await learner.learn()
  learner.dispose()
}

const SERIES = { report: 100, import: 2_000, mail: 30 }
const around = (ms: number): number => ms * Math.exp(0.2 * (random() + random() - 1))

/** A while of ordinary work. */
const work = async (who: string, rounds: number): Promise<void> => {
  for (let n = 0; n < rounds; n++) {
    const jobs = Object.entries(SERIES).map(([name, ms]) => ({ name, ranMs: around(ms) }))
    await runJobs(who, [...jobs, { name: `once ${n}`, ranMs: around(300) }])
    if (n % 10 === 9) await learnAll()
  }
}

/** Series with history, a new series of a known type, and what somebody gets who has never run anything. */
const look = async (): Promise<Map<string, number>> => {
  const seen = new Map<string, number>()
  for (const who of ['ada', 'bob', 'newcomer']) {
    const names = [...Object.keys(SERIES), 'something new']
    for (const [n, prediction] of (await predict(who, names)).entries()) {
      assert.ok(prediction)
      seen.set(`p50 of ${names[n]} of ${who}`, Math.exp(prediction.p50Log))
      seen.set(`p90 of ${names[n]} of ${who}`, Math.exp(prediction.p90Log))
    }
  }
  return seen
}

const assertUnmoved = async (before: Map<string, number>, by: string): Promise<void> => {
  for (const [what, after] of await look()) {
    const change = Math.abs(after / (before.get(what) ?? 0) - 1)
    assert.ok(change <= 0.05, `${by}: ${what} went from ${before.get(what)} to ${after} ms`)
  }
}

/** 3,000 runs of Mallory's that take 3 ms or ten minutes. */
const poison = async (learn: () => Promise<void>): Promise<void> => {
  for (let round = 0; round < 6; round++) {
    // Their features are those of ordinary work; then all runs that were predicted from them are absurd.
    await runJobs(
      'mallory',
      Object.entries(SERIES).map(([name, ms]) => ({ name, ranMs: ms })),
    )
    await learn()
    const absurd = round % 2 ? 3 : 600_000
    const names = [
      ...Object.keys(SERIES),
      'something new',
      ...Array.from({ length: 96 }, (_, n) => `${round} ${n}`),
    ]
    for (let n = 0; n < 5; n++)
      await runJobs(
        'mallory',
        names.map((name) => ({ name, ranMs: absurd })),
      )
    await learn()
  }
}

test('no organisation changes the predictions of another by more than a twentieth', async () => {
  await runJobs(
    'eve',
    Array.from({ length: 4 }, (_, n) => ({ name: `small ${n}`, ranMs: 101 })),
  )
  await learnAll()
  const before96 = await look()
  await runJobs(
    'eve',
    Array.from({ length: 96 }, (_, n) => ({ name: `large ${n % 8}`, ranMs: 381 })),
  )
  await learnAll()
  await assertUnmoved(before96, '96 jobs')
  const [first] = await predict('newcomer', ['report'])
  assert.deepEqual([first?.source, Math.round(Math.exp(first?.p50Log ?? 0))], ['default', 1_000])
  assert.ok(Math.exp(first?.p90Log ?? 0) > 5_000, 'a newcomer has a wide spread')

  for (const who of ['ada', 'bob']) await work(who, 40)
  const before = await look()

  await poison(learnAll)
  await assertUnmoved(before, '3,000 absurd runtimes')
})

test('where estimates are shared, a new series starts from what others have run of its type, and from nothing else', async () => {
  const before = await look()
  await runJobs('eve', [{ name: 'another', ranMs: 5_000 }])
  await learnAll(true)
  const [shared] = await predict('newcomer', ['report'])
  assert.deepEqual([shared?.source, Math.round(Math.exp(shared?.p50Log ?? 0) / 100)], ['type', 50])
  await learnAll()
  await assertUnmoved(before, 'no longer shared')
})

type Learner = Awaited<ReturnType<typeof createLearner>>

const ALTERNATING = [...Object.keys(SERIES), ...Array.from({ length: 21 }, (_, n) => `series ${n}`)]

/** Short and long by turns, which only the network learns. */
const runAlternating = (who: string, round: number): Promise<void> =>
  runJobs(
    who,
    ALTERNATING.map((name, n) => ({ name, ranMs: around((n + round) % 2 ? 800 : 100) })),
  )

/** Until a trained network is deployed and moves some prediction by so much. */
const trainNetwork = async (whose: readonly string[], { learn }: Learner, factor: number) => {
  for (let round = 0; round < 60; round++) {
    for (const who of whose) await runAlternating(who, round)
    await learn()
    const text = `select only_org from models where status = 'champion' and trained_on > 0`
    const [champion] = await database.sql<{ only_org: string | null }>(text)
    if (champion && Math.max(...(await shiftsOf(whose[0] ?? ''))) >= factor) return champion
  }
  assert.fail('no trained network has a say')
}

/** By which factor the network moves each prediction, up or down. */
const shiftsOf = async (who: string): Promise<number[]> => {
  const { without, shipped } = await predictBoth(who, ALTERNATING)
  return without.flatMap((one, n) => {
    const other = shipped[n]
    assert.ok(one && other && one.modelVersion === null && other.modelVersion !== null)
    const shifts = [
      ...[other.p50Log - one.p50Log, other.p90Log - one.p90Log],
      ...[(other.p99Log ?? 0) - (one.p99Log ?? 0), other.spreadLog - one.spreadLog],
    ]
    return shifts.map((log) => Math.exp(Math.abs(log)))
  })
}

const assertBounded = async (who: string): Promise<void> => {
  for (const shift of await shiftsOf(who)) assert.ok(shift <= 1.024 + 1e-9, `${who}: by ${shift}`)
}

test('a network that was trained on one organisation has its full say there, and next to none elsewhere', async () => {
  await reopen()
  const learner = await createLearner()
  const { only_org } = await trainNetwork(['ada'], learner, 1.5)
  assert.equal(only_org, tenants.ada?.orgId)
  for (let round = 0; round < 6; round++) {
    await runAlternating('bob', round)
    await learner.learn()
    await assertBounded('bob')
  }
  learner.dispose()
})

test('however a trained network is poisoned, predictions of others hardly move', async () => {
  await reopen()
  const learner = await createLearner()
  const { only_org } = await trainNetwork(['ada', 'bob'], learner, 1.02)
  assert.equal(only_org, null)
  const before = await look()
  await poison(learner.learn)
  await assertUnmoved(before, '3,000 absurd runtimes')
  for (const who of ['ada', 'bob', 'newcomer']) await assertBounded(who)
  learner.dispose()
})
