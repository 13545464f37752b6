import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { createWeights } from '../../functions/prediction/lstm/weights.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import { emptyMemory, type SeriesMemory } from '../../functions/prediction/model/series-memory.ts'
import { createAccuracyWindow } from '../../worker-runtime/learning/accuracy-window.ts'
import { createEvidence } from '../../worker-runtime/learning/compare-paired.ts'
import { SHAPE } from '../../worker-runtime/learning/find-champion.ts'
import { createLearner } from '../../worker-runtime/learning/learner.ts'
import { createRecallMap } from '../../worker-runtime/learning/recall-map.ts'
import { createStateKeeper } from '../../worker-runtime/learning/state-keeper.ts'
import { createTournament, type Version } from '../../worker-runtime/learning/tournament.ts'
import { createTrainingMemory, type Lesson } from '../../worker-runtime/learning/training-memory.ts'
import { createTypeStatistics, orgTypeKey } from '../../worker-runtime/learning/type-statistics.ts'
import { useWasmBackend } from '../../worker-runtime/learning/wasm-backend.ts'
import { sampleWith } from '../support/lessons.ts'

before(useWasmBackend)

const lesson = (overrides: Partial<Lesson> = {}): Lesson => ({
  org: 'o',
  series: 'a',
  vintage: 0,
  x: new Float32Array(SHAPE.inputs),
  target: 0,
  censored: false,
  state: new Float32Array(0),
  ...overrides,
})

test('a window goes back through its series alone, oldest first, and what is missing is masked', () => {
  const memory = createTrainingMemory(SHAPE)
  for (let n = 0; n < 40; n++)
    memory.add(lesson({ series: n % 2 ? 'odd' : 'even', target: n, censored: n === 39 }))
  const { steps, size, targets, weights, censored, initialState } = memory.batch(() => 0)
  const column = <T>(values: ArrayLike<T>, b: number): T[] =>
    Array.from({ length: steps }, (_, t) => values[t * size + b] as T)
  // The newest of all is the last odd one.
  assert.deepEqual(
    column(targets, 0),
    Array.from({ length: 16 }, (_, n) => 9 + 2 * n),
  )
  assert.deepEqual(column(censored ?? [], 0).slice(-2), [0, 1])
  assert.ok(
    column(weights, 0).every((weight, n, all) => weight > 0 && weight >= (all[n - 1] ?? 0)),
    'newer count more',
  )
  assert.equal(initialState.length, size * 4 * SHAPE.hidden)

  const few = createTrainingMemory(SHAPE)
  for (const target of [1, 2, 3]) few.add(lesson({ target }))
  const short = few.batch(() => 0)
  assert.deepEqual(column(short.weights, 0).map(Boolean), [true, true, true, ...Array(13).fill(false)])
})

test('a window begins in the state that its series had before it', () => {
  const memory = createTrainingMemory(SHAPE)
  for (let n = 0; n < 20; n++) memory.add(lesson({ target: n, state: new Float32Array(128).fill(n) }))
  const { initialState } = memory.batch(() => 0)
  assert.ok(
    initialState.slice(0, 128).every((value) => value === 4),
    'before the 16th from the end',
  )
})

test('half of the windows end in the newest two thousand, and what is too old is gone', () => {
  const memory = createTrainingMemory(SHAPE)
  const x = new Float32Array(SHAPE.inputs)
  for (let n = 0; n < 45_000; n++) memory.add(lesson({ x, series: `${n % 10_000}`, target: n }))
  assert.equal(memory.added(), 45_000)
  assert.deepEqual(
    memory.newest(3).map(({ target }) => target),
    [44_997, 44_998, 44_999],
  )
  assert.equal(memory.newest(1e9).length, 40_000)
  const { size, steps, targets, weights } = memory.batch(() => 0.999_99)
  const ends = Array.from({ length: size }, (_, b) => {
    const last = Array.from({ length: steps }, (_, t) => t * size + b)
      .filter((row) => weights[row])
      .at(-1)
    return targets[last ?? 0] ?? 0
  })
  assert.ok(
    ends.every((end, b) => (b % 2 ? end === 5_000 : end === 43_000)),
    `${ends}`,
  )
})

test('states are carried on execution by execution, and each lesson keeps the one before it', () => {
  const predictor = createPredictor(createWeights(SHAPE, 3))
  const keeper = createStateKeeper(() => predictor)
  const [a, b] = [emptyMemory(), emptyMemory()]
  const xs = [1, 2, 3].map((n) => new Float32Array(SHAPE.inputs).fill(n / 3))
  const lessons = xs.map((x) => lesson({ x }))
  for (const one of lessons) keeper.add(a, one)
  keeper.add(b, lesson({ x: xs[0] as Float32Array }))
  keeper.settle()
  let state: Float32Array<ArrayBuffer> = new Float32Array(predictor.width)
  for (const [n, x] of xs.entries()) {
    const before = lessons[n]?.state ?? []
    assert.deepEqual([...before], n === 0 ? [] : [...state])
    state = predictor.step(x, state).state
    if (n === 0) near(b.state, state)
  }
  near(a.state, state)
  predictor.dispose()
})

const near = (actual: ArrayLike<number>, expected: ArrayLike<number>): void => {
  assert.equal(actual.length, expected.length)
  for (let n = 0; n < expected.length; n++) assert.ok(Math.abs((actual[n] ?? 0) - (expected[n] ?? 0)) < 1e-5)
}

const run = (log: number) => ({ log, sizeLog: 0, timeoutLog: 0, cpuLog: 0, gapLog: 0, hour: 0 })

test("an organisation's type has the median of about the last thousand executions, and its drift", () => {
  const types = createTypeStatistics({ sharesEstimates: false })
  for (let n = 0; n < 1_700; n++)
    types.observe({ org: 'o', type: 't', run: run(n < 500 ? 100 : n % 3), baseLog: 0 })
  types.observe({ org: 'p', type: 'u', run: run(50), baseLog: 0 })
  const { medianLog, runs, driftLog, newest } = types.orgType('o', 't') ?? assert.fail()
  assert.deepEqual([medianLog, runs, newest.length], [1, 1_700, 48], 'those of the beginning are forgotten')
  assert.ok(driftLog > 0.5)
  assert.deepEqual(
    [types.orgType('p', 'u')?.meanLog, types.orgType('o', 'u'), types.sharedType('u')],
    [50, undefined, undefined],
  )
})

test('only if estimates are shared, a type is known beyond the organisation, and goes on from what was stored', () => {
  const known = { runs: 7, meanLog: 3, deviationLog: 1, medianLog: 4 }
  for (const sharesEstimates of [true, false]) {
    const types = createTypeStatistics({ sharesEstimates })
    for (const org of ['o', 'p']) types.observe({ org, type: 't', run: run(5), baseLog: 0 })
    assert.equal(types.sharedType('t')?.runs, sharesEstimates ? 2 : undefined)
  }
  const types = createTypeStatistics({ sharesEstimates: true })
  types.restore('seldom', known)
  assert.equal(types.sharedType('seldom')?.medianLog, 4)
})

test("an organisation's types are recalled", () => {
  const known = { runs: 7, meanLog: 3, deviationLog: 1, medianLog: 3, driftLog: 0.5, newest: [], sampled: [] }
  const recall = (key: string) => (key === orgTypeKey('o', 't') ? known : undefined)
  const types = createTypeStatistics({ recall, sharesEstimates: false })
  assert.equal(types.hasOrgType(orgTypeKey('o', 't')), false)
  assert.equal(types.orgType('o', 't')?.runs, 7)
  assert.equal(types.hasOrgType(orgTypeKey('o', 't')), true)
  types.trim(0)
  assert.equal(types.hasOrgType(orgTypeKey('o', 't')), false)
})

test('no organisation has more of a batch than its share', () => {
  const shareOf = (orgs: number): number => {
    const memory = createTrainingMemory(SHAPE)
    for (let n = 0; n < 5_000; n++) {
      const few = n < 20 * orgs
      memory.add(lesson({ org: few ? `${n % orgs}` : 'many', series: `${n}`, target: few ? 0 : 1 }))
    }
    const { targets, weights } = memory.batch(createRandom(1))
    const sum = (values: Float32Array): number => values.reduce((total, value) => total + value, 0)
    return sum(weights.map((weight, n) => weight * (targets[n] ?? 0))) / sum(weights)
  }
  assert.ok(Math.abs(shareOf(1) - 1 / 2) < 1e-6, 'with few, all have the same')
  assert.ok(Math.abs(shareOf(3) - 1 / 4) < 1e-6)
  assert.ok(Math.abs(shareOf(200) - 0.05) < 1e-6, 'with many, one has at most a twentieth')
})

test('a version that helps one organisation at the expense of another is not promoted', () => {
  const decide = (others: number): string[] => {
    const memory = createTrainingMemory(SHAPE)
    const tournament = createTournament({ seed: 1 })
    // The same jobs take as long as predicted in one organisation, and e³ times as long in the other.
    for (let n = 0; n < 60; n++)
      memory.add(lesson({ org: 'quiet', series: `q${n % 5}`, vintage: n, target: others }))
    const decisions: string[] = []
    for (let round = 0; round < 4; round++) {
      for (let n = 0; n < 400; n++)
        memory.add(lesson({ org: 'busy', series: `b${n}`, vintage: round, target: 3 }))
      decisions.push(...tournament.round(memory).map(({ kind }) => kind))
    }
    tournament.dispose()
    return decisions
  }
  assert.ok(!decide(0).includes('promoted'))
  assert.ok(decide(3).includes('promoted'), 'where both agree, it is')
})

test('what was used longest ago is let go of first, and recalled when it is asked for', () => {
  const recalled: string[] = []
  const map = createRecallMap<string>((key) => {
    recalled.push(key)
    return key === 'stored' ? 'from elsewhere' : undefined
  })
  for (const key of ['a', 'b', 'c']) map.set(key, key)
  map.get('a')
  map.trim(2)
  assert.deepEqual([map.has('a'), map.has('b'), map.has('c')], [true, false, true])
  assert.deepEqual(
    [map.get('stored'), map.get('stored'), map.get('b')],
    ['from elsewhere', 'from elsewhere', undefined],
  )
  assert.deepEqual(recalled, ['stored', 'b'])
})

test('evidence of many series counts, that of one series alone does not, however often', () => {
  const same = (count: number, value: number) => Array.from({ length: count }, () => value)
  const series = (count: number, of: number) => Array.from({ length: count }, (_, n) => `${n % of}`)
  const one = createEvidence().add(series(500, 1), same(500, 1), same(500, 0.5))
  assert.deepEqual([one.executions, one.before, one.after, one.z], [500, 1, 0.5, 1])
  const many = createEvidence().add(series(500, 100), same(500, 1), same(500, 0.5))
  assert.ok(many.z > 9)
  assert.ok(createEvidence().add(series(500, 100), same(500, 0.5), same(500, 1)).z < -9)
  assert.equal(createEvidence().add([], [], []).z, 0)
})

test('evidence adds up from round to round, and fades', () => {
  const evidence = createEvidence()
  const first = evidence.add(['a', 'b', 'c'], [1, 1, 1], [0, 0, 0]).z
  const second = evidence.add(['d', 'e', 'f'], [1, 1, 1], [0, 0, 0]).z
  assert.ok(second > first)
  for (let n = 0; n < 50; n++) evidence.add(['g'], [0], [1])
  assert.ok(evidence.add(['g'], [0], [1]).z < -0.99, 'of the first nothing is left')
})

/** Executions whose runtime an input decides, which way round `sign` says. */
const lessonsOf = (random: () => number, count: number, sign: number): Lesson[] =>
  Array.from({ length: count }, (_, n) => {
    const value = random() < 0.5 ? 1 : -1
    const x = new Float32Array(SHAPE.inputs)
    x[0] = value
    return lesson({ series: `${n % 50}`, x, target: sign * value, state: new Float32Array(128) })
  })

test('a challenger is promoted when it is better on what it has not seen, and rolled back when it proves worse', () => {
  const random = createRandom(9)
  const memory = createTrainingMemory(SHAPE)
  const tournament = createTournament({ seed: 2, newestVersion: 40 })
  assert.deepEqual([tournament.champion().version, tournament.isRoundDue(memory)], [1, false])
  const teach = (sign: number) => {
    for (const one of lessonsOf(random, 300, sign)) memory.add(one)
    return tournament.round(memory)
  }
  assert.deepEqual(teach(1), [], 'nothing to judge yet')
  assert.equal(tournament.isRoundDue(memory), false)
  const [promotion] = teach(1)
  assert.equal(promotion?.kind, 'promoted')
  assert.deepEqual([promotion?.version.version, promotion?.against], [41, 1], 'numbers go on from the newest')
  assert.ok(
    (promotion?.comparison.z ?? 0) > 2 &&
      promotion &&
      promotion.comparison.after < promotion.comparison.before,
  )
  assert.equal(tournament.champion().version, 41)
  const [rollback] = teach(-1)
  assert.deepEqual([rollback?.kind, rollback?.version.version, rollback?.against], ['rolled_back', 41, 1])
  assert.equal(tournament.champion().version, 1)
  const [next] = [...teach(-1), ...teach(-1)]
  assert.ok(
    (next?.version.version ?? 0) > 42,
    'the number of the challenger that fell with it is not used again',
  )
  tournament.dispose()
})

test('what was trained on in an earlier term is no evidence for or against a version', () => {
  const random = createRandom(6)
  const memory = createTrainingMemory(SHAPE)
  const weights = createWeights(SHAPE, 1)
  const version = (n: number) => ({ version: n, weights, trainedOn: 0, onlyOrg: null })
  const tournament = createTournament({ seed: 2, champion: version(5), former: version(3) })
  for (const one of lessonsOf(random, 300, 1)) memory.add(one)
  tournament.begin(memory)
  assert.equal(tournament.isRoundDue(memory), true, 'but it is trained on again')
  assert.deepEqual(tournament.round(memory), [])
  for (const one of lessonsOf(random, 300, 1)) memory.add(one)
  const [decision] = tournament.round(memory)
  assert.deepEqual([decision?.kind, decision?.comparison.executions], ['promoted', 300])
  tournament.dispose()
})

test('a version knows the one organisation that it was trained on, until there is a second', () => {
  const random = createRandom(9)
  const orgOf = (known: Partial<Version>, orgs: readonly string[]): (string | null)[] => {
    const memory = createTrainingMemory(SHAPE)
    const champion = { version: 1, weights: createWeights(SHAPE, 2), trainedOn: 0, onlyOrg: null, ...known }
    const tournament = createTournament({ seed: 2, champion })
    const decisions = orgs.flatMap((org) => {
      for (const one of lessonsOf(random, 300, 1)) memory.add({ ...one, org })
      return tournament.round(memory)
    })
    tournament.dispose()
    return decisions.map(({ version }) => version.onlyOrg)
  }
  assert.deepEqual(orgOf({}, ['a', 'a', 'a']), ['a', 'a'])
  assert.deepEqual(orgOf({}, ['a', 'b', 'b']), ['a', null])
  assert.deepEqual(orgOf({ trainedOn: 300, onlyOrg: 'a' }, ['a', 'a']), ['a'])
  assert.deepEqual(orgOf({ trainedOn: 300, onlyOrg: 'a' }, ['b', 'b', 'b']), [null, null], 'by its weights')
  assert.deepEqual(orgOf({ trainedOn: 300, onlyOrg: null }, ['a', 'a']), [null], 'nor is it forgotten')
})

test('noise promotes nobody', () => {
  const random = createRandom(4)
  const memory = createTrainingMemory(SHAPE)
  const tournament = createTournament({ seed: 2 })
  const decisions = Array.from({ length: 3 }, () => {
    for (const one of lessonsOf(random, 300, 0)) memory.add({ ...one, target: 2 * random() - 1 })
    return tournament.round(memory)
  }).flat()
  assert.ok(
    decisions.length > 0 && decisions.every(({ kind }) => kind === 'rejected'),
    JSON.stringify(decisions.map(({ kind }) => kind)),
  )
  assert.equal(new Set(decisions.map(({ version }) => version.version)).size, decisions.length)
  tournament.dispose()
})

const execution = (log: number, more: { censored?: boolean; series?: string } = {}) => ({
  ...{
    series: 'a',
    org: 'o',
    type: 't',
    log,
    censored: false,
    endedAtS: 1_800_000_000,
    sample: sampleWith(),
  },
  ...more,
})

test('of executions that were predicted from one state the later ones count less, whatever the series had run before', () => {
  const learner = createLearner({ seed: 1 })
  const ofOldSeries = { ...execution(9), sample: sampleWith({ runs: 50_000, seen: 0 }) }
  for (let n = 0; n < 100; n++) learner.learn(ofOldSeries)
  const { weight } = learner.memory('a')
  assert.ok(weight > 1 && weight < 2.7, `a hundred count as ${weight}`)
  learner.dispose()
})

test('a timeout judges nobody and is no past run, but the network has seen it', () => {
  const learner = createLearner({ seed: 1 })
  learner.learn(execution(9, { censored: true }))
  learner.settle()
  const memory = learner.memory('a')
  assert.deepEqual([memory.seen, memory.runs, memory.errors, memory.state.length], [0, [], [], 128])
  assert.equal(learner.types.orgType('o', 't'), undefined)
  assert.deepEqual(learner.orgMemory('o').stretch, { p90: 0, p99: 0, seen: 0 })
  learner.dispose()
})

test('executions that are shown again are trained on, and remembered no second time', () => {
  const learner = createLearner({ seed: 1 })
  learner.replay(Array.from({ length: 150 }, (_, n) => execution(7, { series: `${n % 3}` })))
  assert.equal(learner.isRoundDue(), true)
  assert.deepEqual(learner.memory('1'), emptyMemory())
  assert.equal(learner.types.orgType('o', 't'), undefined)
  learner.dispose()
})

test('a series that was let go of goes on from what was stored', () => {
  const stored = new Map<string, SeriesMemory>()
  const learner = createLearner({ seed: 1, recall: (series) => stored.get(series) })
  for (const series of ['a', 'b']) learner.learn(execution(7, { series }))
  learner.settle()
  stored.set('a', structuredClone(learner.memory('a')))
  learner.memory('b')
  learner.trim(1)
  assert.deepEqual([learner.isAtHand('a'), learner.isAtHand('b')], [false, true])
  learner.learn(execution(7))
  assert.equal(learner.memory('a').seen, 2)
  learner.dispose()
})

test('accuracy is that of the newest executions, of the shipped prediction and of each expert', () => {
  const window = createAccuracyWindow(2)
  assert.equal(window.read(), undefined)
  const log = Math.log(1000)
  const advice = [...EXPERTS.map((_, n) => log + n), log]
  window.add(sampleWith(), log + 50)
  window.add(sampleWith({ advice }), log + 0.5)
  window.add(sampleWith({ advice, p50Log: log + Math.log(2) }), log)
  const { errors, coverage, mape, executions } = window.read() ?? assert.fail()
  assert.deepEqual(Object.keys(errors), ['smartqueue', ...EXPERTS])
  assert.deepEqual(
    [errors.smartqueue, errors.series, errors['last-two'], coverage, executions],
    [0.5966, 0.25, 0.75, 1, 2],
  )
  assert.ok(Math.abs(mape - (100 * (0.3935 + 1)) / 2) < 0.1, `${mape}`)
})

test('drift is how far the newest predictions are off to one side', () => {
  const window = createAccuracyWindow(300)
  const log = Math.log(1000)
  for (let n = 0; n < 500; n++) window.add(sampleWith({ p50Log: log }), log + (n % 2 ? 0.5 : -0.5))
  assert.equal(window.read()?.drift, 0, 'off as often to one side as to the other')
  for (let n = 0; n < 100; n++) window.add(sampleWith({ p50Log: log }), log - 1)
  assert.equal(window.read()?.drift, 0.5, 'half of the newest 200 ran a good deal shorter')
  for (let n = 0; n < 100; n++) window.add(sampleWith({ p50Log: log }), log - 1)
  assert.equal(window.read()?.drift, 1)
})
