import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PredictionInputsRow } from '../../db/queries/prediction-inputs.ts'
import type { Query, Run } from '../../db/query.ts'
import { DatabaseUnavailable } from '../../functions/database-errors.ts'
import { toBase64 } from '../../functions/prediction/base64.ts'
import { createFaults } from '../../functions/prediction/faults.ts'
import { createInputCache, InputsTimeout } from '../../functions/prediction/inputs.ts'
import { joinParts } from '../../functions/prediction/job-predictions.ts'
import { createWeights } from '../../functions/prediction/lstm/weights.ts'
import { serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
import { emptyMemory, packMemory } from '../../functions/prediction/model/series-memory.ts'
import { createModelStore } from '../../functions/prediction/model-store.ts'
import { buildRuntimeModel, type RuntimeModel } from '../../functions/prediction/runtime-model.ts'

const ORG = 'org'
const SERIES = { type: 'test', name: 'report' }

const rowOf = (series: { type: string; name: string }[], meanLog = 5): PredictionInputsRow => ({
  series: series.map((name) => ({
    ...name,
    runs: 30,
    mean_log: meanLog,
    deviation_log: 0.5,
    drift_log: 0,
    memory: btoa('\0\xff'),
    newest_job_id: null,
    org_type: null,
    paused: false,
  })),
  shared_types: [],
  org_memory: null,
  champion: null,
  workers: [{ worker_id: 'w', types: ['test'], slots: 1, running: 0, cpu_units: 8, memory_mb: 512 }],
  queue: {
    age_ms: 0,
    took_ms: 1,
    depth: 0,
    lanes: [],
    lane_jobs: [],
    lane_ms: [],
    running_ms: [],
    recent_lanes: [],
    recent_loads: [],
    stretch: 1,
    ...{ running_jobs: 0, weight: 1, share: 1, used: 0, short_since: null, others: [] },
  },
})

/** A database that answers inputs, and counts how often it is asked. */
const createStage = () => {
  const stage = {
    at: 0,
    asked: [] as string[],
    held: [] as Promise<unknown>[],
    meanLog: 5,
    champion: null as number | null,
    weights: async (): Promise<Uint8Array> => Uint8Array.of(1),
    answer: (row: PredictionInputsRow): Promise<unknown[]> => Promise.resolve([row]),
    run: (async <Row>({ name, values }: Query<Row>) => {
      stage.asked.push(name)
      if (name === 'get-model-weights') return [{ weights: toBase64(await stage.weights()) }]
      if (name !== 'get-prediction-inputs') return []
      const [, types, names] = values as [string, string[], string[]]
      const series = types.map((type, n) => ({ type, name: names[n] ?? '' }))
      return stage.answer({ ...rowOf(series, stage.meanLog), champion: stage.champion })
    }) as Run,
    hold: (work: Promise<unknown>) => {
      stage.held.push(work)
    },
    settle: async () => {
      await Promise.allSettled(stage.held.splice(0))
    },
    now: () => stage.at,
  }
  return stage
}

test('what is fresh is not asked for again; what is a little old is used, and refreshed behind the back', async () => {
  const stage = createStage()
  const cache = createInputCache({ now: stage.now })
  const get = async () => {
    const inputs = await cache.get(stage.run, ORG, [SERIES], stage.hold)
    return inputs.series(SERIES)?.view.estimate?.meanLog
  }
  assert.equal(await get(), 5)
  stage.meanLog = 6
  stage.at = 900
  assert.equal(await get(), 5)
  assert.equal(stage.asked.length, 1)
  stage.at = 2000
  assert.deepEqual(await Promise.all([get(), get()]), [5, 5], 'nobody waits')
  assert.equal(stage.asked.length, 2, 'and it is asked for once')
  await stage.settle()
  assert.equal(await get(), 6)
  stage.meanLog = 7
  stage.at = 9000
  assert.equal(await get(), 7, 'too old to be used')
})

test('what is known of one organisation is nothing to another', async () => {
  const stage = createStage()
  const cache = createInputCache({ now: stage.now })
  await cache.get(stage.run, ORG, [SERIES], stage.hold)
  await cache.get(stage.run, 'other', [SERIES], stage.hold)
  assert.equal(stage.asked.length, 2)
})

test('of a request with very many series some go without', async () => {
  const stage = createStage()
  const cache = createInputCache({ now: stage.now })
  const series = Array.from({ length: 300 }, (_, n) => ({ type: 'test', name: `${n}` }))
  const inputs = await cache.get(stage.run, ORG, series, stage.hold)
  assert.equal(series.filter((name) => inputs.series(name)).length, 200)
})

test('nobody waits for long, and what comes late is there for the next', async () => {
  const stage = createStage()
  const late = Promise.withResolvers<unknown[]>()
  stage.answer = () => late.promise
  const cache = createInputCache({ now: stage.now, patienceMs: 5 })
  await assert.rejects(cache.get(stage.run, ORG, [SERIES], stage.hold), InputsTimeout)
  late.resolve([rowOf([SERIES])])
  await stage.settle()
  assert.ok((await cache.get(stage.run, ORG, [SERIES], stage.hold)).series(SERIES))
  assert.equal(stage.asked.length, 1)
})

test('jobs that were just predicted stand in the queue, until they must have run', async () => {
  const stage = createStage()
  const cache = createInputCache({ now: stage.now })
  const get = () => cache.get(stage.run, ORG, [SERIES], stage.hold)
  const queue = async () => {
    const { runningRemainingMs, lanes } = (await get()).queue ?? {}
    return [runningRemainingMs, lanes?.map(({ predictedMs }) => predictedMs)]
  }
  const arriving = [500, 700].map((p50Ms) => ({ lane: 3, p50Ms }))
  ;(await get()).arrive(arriving)
  assert.deepEqual(
    await queue(),
    [[600], [600]],
    'one takes the slot; what a job takes is what they take on average',
  )
  stage.at = 400
  assert.deepEqual(await queue(), [[200], [600]])
  stage.at = 800
  assert.deepEqual(await queue(), [[400], []])
  stage.at = 1300
  assert.deepEqual(await queue(), [[], []])
})

test('jobs that were just predicted stay in the queue until its sums count them', async () => {
  const stage = createStage()
  const cache = createInputCache({ now: stage.now })
  const waiting = async () => {
    const { queue } = await cache.get(stage.run, ORG, [SERIES], stage.hold)
    return queue?.lanes.reduce((sum, { jobs }) => sum + jobs, 0)
  }
  stage.at = 1_000
  const inputs = await cache.get(stage.run, ORG, [SERIES], stage.hold)
  inputs.arrive(Array.from({ length: 10 }, () => ({ lane: 3, p50Ms: 100_000 })))
  assert.equal(await waiting(), 9, 'one takes the slot')
  const sumsOfAge = (age_ms: number) => {
    stage.answer = (row) => Promise.resolve([{ ...row, queue: row.queue && { ...row.queue, age_ms } }])
  }
  sumsOfAge(2_000)
  stage.at = 2_500
  await waiting()
  await stage.settle()
  assert.equal(await waiting(), 9, 'the sums were taken before')
  sumsOfAge(500)
  stage.at = 5_000
  await waiting()
  await stage.settle()
  assert.equal(await waiting(), 0, 'the sums are newer')
})

const JOB = {
  ...SERIES,
  priority: 'normal' as const,
  payload: {},
  timeoutSeconds: null,
  cpuUnits: 1,
  memoryMb: 64,
  runAtMs: null,
  parents: [],
}

const predictWith = (
  stage: ReturnType<typeof createStage>,
  build: (
    version: number | null,
    weights: Uint8Array | undefined,
  ) => Pick<RuntimeModel, 'predict'> & Partial<RuntimeModel>,
) => {
  const faults = createFaults(stage.run, stage.now)
  const models = createModelStore({
    run: stage.run,
    faults,
    build: (champion) => ({
      dispose: () => stage.asked.push('dispose'),
      ...build(champion?.version ?? null, champion?.weights),
    }),
    now: stage.now,
  })
  const inputs = createInputCache({ now: stage.now, patienceMs: 5 })
  const predictions = joinParts({ inputs, models, faults, now: stage.now })
  return async (jobs = [JOB]) => {
    const answer = await predictions.predict(jobs, { run: stage.run, orgId: ORG, hold: stage.hold })
    await stage.settle()
    return answer
  }
}

const plain = () => buildRuntimeModel(null)
const network = (version: number): Pick<RuntimeModel, 'predict'> => ({
  predict: (jobs) =>
    plain()
      .predict(jobs, ORG)
      .map((one) => ({ ...one, source: 'lstm', modelVersion: version })),
})

test('a new champion is fetched behind the back, once, and then predicts', async () => {
  const stage = createStage()
  stage.champion = 4
  const predict = predictWith(stage, (version) => (version === null ? plain() : network(version)))
  assert.equal((await predict())[0]?.source, 'series', 'nobody waits for it')
  assert.deepEqual(
    (await predict()).map((one) => one?.modelVersion),
    [4],
  )
  assert.equal(stage.asked.filter((name) => name === 'get-model-weights').length, 1)
  stage.champion = 5
  stage.at = 9_000
  await predict()
  assert.deepEqual(
    (await predict()).map((one) => one?.modelVersion),
    [5],
  )
  assert.equal(stage.asked.filter((name) => name === 'dispose').length, 1, 'the one before it is freed')
})

test('weights that cannot be read are counted once, and predictions go on without them', async () => {
  const stage = createStage()
  stage.champion = 4
  const predict = predictWith(stage, (version) => {
    if (version !== null) throw new Error('corrupt')
    return plain()
  })
  for (let n = 0; n < 3; n++) assert.equal((await predict())[0]?.source, 'series')
  assert.equal(stage.asked.filter((name) => name === 'count-prediction-faults').length, 1)
  assert.equal(stage.asked.filter((name) => name === 'get-model-weights').length, 1)
})

test('a model that fails, or predicts nonsense, is passed over and counted, at most every ten seconds', async () => {
  const faulty: Pick<RuntimeModel, 'predict'>[] = [
    {
      predict: () => {
        throw new Error('broken')
      },
    },
    {
      predict: (jobs) =>
        plain()
          .predict(jobs, ORG)
          .map((one) => ({ ...one, p50Log: Number.NaN })),
    },
    {
      predict: (jobs) =>
        plain()
          .predict(jobs, ORG)
          .map((one) => ({ ...one, residualLog: Number.POSITIVE_INFINITY })),
    },
  ]
  for (const model of faulty) {
    const stage = createStage()
    stage.champion = 4
    const predict = predictWith(stage, (version) => (version === null ? plain() : model))
    for (let n = 0; n < 4; n++) assert.equal((await predict())[0]?.p50Log, 5)
    assert.equal(stage.asked.filter((name) => name === 'count-prediction-faults').length, 1)
    stage.at = 10_001
    await predict()
    assert.equal(stage.asked.filter((name) => name === 'count-prediction-faults').length, 2)
  }
})

test('a model that cannot be freed fails no submission', async () => {
  const stage = createStage()
  stage.champion = 4
  const predict = predictWith(stage, (version) =>
    version === null
      ? plain()
      : {
          ...network(version),
          dispose: () => {
            throw new Error('still in use')
          },
        },
  )
  await predict()
  assert.equal((await predict())[0]?.modelVersion, 4)
  stage.champion = null
  stage.at = 9_000
  assert.deepEqual(await predict(), [null])
  assert.ok(stage.asked.includes('count-prediction-faults'))
})

test('without inputs there is no prediction, and never an error', async () => {
  const stage = createStage()
  const predict = predictWith(stage, plain)
  stage.answer = () => Promise.reject(new Error('broken'))
  assert.deepEqual(await predict(), [null])
  stage.answer = () => new Promise(() => {})
  stage.settle = async () => {}
  assert.deepEqual(await predict(), [null])
  stage.answer = () => Promise.reject(new DatabaseUnavailable('down', { rolledBack: false }))
  assert.deepEqual(await predict(), [null])
  assert.equal(
    stage.asked.filter((name) => name === 'count-prediction-faults').length,
    2,
    'not of a database that is away',
  )
})

test('jobs that look alike are predicted once', async () => {
  const stage = createStage()
  let asked = 0
  const predict = predictWith(stage, () => ({
    predict: (jobs) => {
      asked += jobs.length
      return plain().predict(jobs, ORG)
    },
  }))
  const answers = await predict([JOB, JOB, { ...JOB, payload: { longer: true } } as never])
  assert.equal(asked, 2)
  assert.deepEqual(
    answers.map((one) => Math.round(one?.promisedWaitMs ?? -1)),
    [0, 148, 297],
  )
})

/** What the product builds, over the stage's weights. */
const product = (version: number | null, weights: Uint8Array | undefined): RuntimeModel =>
  buildRuntimeModel(version === null || !weights ? null : { version, weights, onlyOrg: null })

const faultsOf = (stage: ReturnType<typeof createStage>) =>
  stage.asked.filter((name) => name === 'count-prediction-faults').length

const withSeries =
  (stage: ReturnType<typeof createStage>) =>
  (change: Partial<PredictionInputsRow['series'][number]>, rest: Partial<PredictionInputsRow> = {}) => {
    stage.answer = async (row) => [
      { ...row, ...rest, series: row.series.map((one) => ({ ...one, ...change })) },
    ]
    return predictWith(stage, product)
  }

const NEW = { runs: null, mean_log: null, deviation_log: null, drift_log: null, memory: null }
const ESTIMATE = { runs: 9, mean_log: 4, deviation_log: 0.5, median_log: 4 }

test('a series that has not run is predicted by its type, and the first job of a type by default', async () => {
  const ask = async (change: object, rest: object = {}) => {
    const stage = createStage()
    const [one] = await withSeries(stage)({ ...NEW, ...change }, rest)()
    assert.equal(faultsOf(stage), 0)
    return [one?.source, Math.round((one?.p50Log ?? 0) * 10) / 10]
  }
  const shared_types = [{ type: 'test', ...ESTIMATE, median_log: 2.5 }]
  const org_type = { ...ESTIMATE, drift_log: 0, memory: null }
  assert.deepEqual(await ask({}), ['default', 6.9])
  assert.deepEqual(await ask({}, { shared_types }), ['type', 2.5])
  assert.deepEqual(await ask({ org_type }, { shared_types }), ['type', 4])
})

test('weights that are damaged, or of another shape, are as none', async () => {
  const whole = serializeWeights(createWeights({ inputs: INPUTS, hidden: 32, heads: 2 }, 1))
  const corrupt = [
    new Uint8Array(0),
    whole.slice(0, -1),
    whole.map((byte, n) => (n === 5_000 ? byte ^ 1 : byte)),
    serializeWeights(createWeights({ inputs: INPUTS - 1, hidden: 32, heads: 2 }, 1)),
    serializeWeights(createWeights({ inputs: INPUTS, hidden: 32, heads: 1 }, 1)),
  ]
  for (const weights of corrupt) {
    const stage = createStage()
    stage.champion = 4
    stage.weights = async () => weights
    const predict = predictWith(stage, product)
    await predict()
    const [one] = await predict()
    assert.deepEqual([one?.source, one?.modelVersion, faultsOf(stage)], ['series', null, 1])
    assert.ok(one?.sample, 'the experts go on, and are learned from')
  }
})

test('while weights do not come, the experts predict without them', async () => {
  const stage = createStage()
  stage.champion = 4
  stage.weights = () => new Promise(() => {})
  stage.settle = async () => {}
  const predict = predictWith(stage, product)
  for (let n = 0; n < 3; n++) {
    const [one] = await predict()
    assert.deepEqual([one?.source, one?.modelVersion], ['series', null])
  }
})

test('if what is remembered makes the experts fail, the running estimate predicts, and that is counted', async () => {
  const stage = createStage()
  const memory = toBase64(packMemory({ ...emptyMemory(), errors: [Number.NaN], weight: 1 }))
  const [one] = await withSeries(stage)({ memory })()
  assert.deepEqual([one?.source, one?.p50Log, one?.sample, faultsOf(stage)], ['series', 5, null, 1])
  assert.ok(one?.promisedWaitMs !== null, 'with a start')
})

test('a submission is the last one to the next, without another look', async () => {
  const stage = createStage()
  const seen: (number | undefined)[] = []
  const predict = predictWith(stage, () => ({
    predict: (jobs) => {
      seen.push(...jobs.map(({ view }) => view.lastSubmittedAtS))
      return plain().predict(jobs, ORG)
    },
  }))
  for (stage.at = 200; stage.at < 600; stage.at += 200) await predict()
  assert.deepEqual(seen, [undefined, 0.2])
})
