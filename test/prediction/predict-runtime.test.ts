import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_ESTIMATE, type Estimate, foldSample } from '../../functions/prediction/estimate.ts'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import {
  calibrate,
  initialStretch,
  spreadP90,
  spreadP99,
} from '../../functions/prediction/model/calibration.ts'
import { hourOf, INPUT_NAMES, INPUTS } from '../../functions/prediction/model/encoder.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import {
  expectedErrors,
  judgeExperts,
  lookAgain,
  maturityOf,
  noErrors,
  weighExperts,
} from '../../functions/prediction/model/mixture.ts'
import { emptyOrgMemory } from '../../functions/prediction/model/org-memory.ts'
import { predictRuntime, type RuntimePrediction } from '../../functions/prediction/model/predict-runtime.ts'
import { emptyMemory, rememberRun } from '../../functions/prediction/model/series-memory.ts'
import type { JobTraits, SeriesView } from '../../functions/prediction/model/series-view.ts'

const JOB: JobTraits = {
  ...{ type: 'test', name: 'a job', sizeLog: 5, timeoutLog: 0, cpuLog: 0.7, memoryLog: 4 },
  ...{ submittedAtS: 1_800_000_000, depthLog: 2 },
}
const nothingKnown = (): SeriesView => ({
  ...{ estimate: undefined, driftLog: 0, memory: emptyMemory(), orgType: undefined, sharedType: undefined },
  ...{ lastSubmittedAtS: undefined, org: emptyOrgMemory() },
})
const everyone = (): boolean => true

test('the encoder gives each input a name and a finite value, whatever the job', () => {
  assert.equal(INPUT_NAMES.length, INPUTS)
  assert.equal(new Set(INPUT_NAMES).size, INPUTS)
  const huge = { sizeLog: 40, timeoutLog: 40, cpuLog: 40, memoryLog: 40, depthLog: 40, submittedAtS: 1e12 }
  const estimate = { runs: 1e9, meanLog: 30, deviationLog: 40 }
  const wild = { ...estimate, medianLog: -30, driftLog: 50, newest: [], sampled: [] }
  const memory = emptyMemory()
  for (const log of [-30, 30, 0]) {
    rememberRun(memory, { log, sizeLog: 0, timeoutLog: 40, cpuLog: 0, gapLog: 30, hour: 0 }, 2e12)
  }
  const known = {
    ...nothingKnown(),
    estimate,
    memory,
    sharedType: wild,
    orgType: wild,
    driftLog: -50,
  }
  for (const view of [nothingKnown(), known, { ...known, lastSubmittedAtS: 2e12 }]) {
    for (const job of [JOB, { ...JOB, ...huge, name: '', type: '💥' }]) {
      const { sample } = predictRuntime(view, job, undefined)
      assert.equal(sample.x.length, INPUTS)
      assert.ok(
        sample.x.every((value) => Math.abs(value) <= 8),
        `${sample.x}`,
      )
    }
  }
})

test('before anything is known the default is predicted, and no p99', () => {
  const { p50Log, p90Log, p99Log, source, residualLog } = predictRuntime(nothingKnown(), JOB, undefined)
  assert.deepEqual([p50Log, p99Log, source, residualLog], [DEFAULT_ESTIMATE.meanLog, null, 'default', 0])
  assert.ok(p90Log > p50Log)
})

test('the mixture believes the one that was right, and shares among equals', () => {
  const [own, general] = [noErrors(), noErrors()]
  const equal = weighExperts(expectedErrors(own, general), everyone)
  for (const weight of equal) assert.ok(Math.abs(weight - 1 / EXPERTS.length) < 1e-9)
  const advice = [...EXPERTS.map((_, n) => (n === 3 ? 1 : 2)), 2]
  for (let n = 0; n < 20; n++) judgeExperts(own, general, advice, 1, 1)
  const weights = weighExperts(expectedErrors(own, general), everyone)
  assert.ok((weights[3] ?? 0) > 0.99, `${weights}`)
  const without = weighExperts(expectedErrors(own, general), (n) => n !== 3)
  assert.equal(without[3], 0)
  assert.ok(Math.abs(without.reduce((sum, weight) => sum + weight, 0) - 1) < 1e-9)
})

test('of many jobs that were submitted together, one wrong guess is not held against an expert many times', () => {
  const [fresh, stale] = [noErrors(), noErrors()]
  const advice = [...EXPERTS.map((_, n) => n), 0]
  for (let n = 1; n <= 100; n++) {
    judgeExperts(fresh, noErrors(), advice, 0, 1)
    judgeExperts(stale, noErrors(), advice, 0, n)
  }
  assert.ok(stale.weight < fresh.weight / 2, `${stale.weight} and ${fresh.weight}`)
})

test('in the long run the best expert is listened to, although all together said otherwise', () => {
  const general = noErrors()
  for (let n = 0; n < 400; n++)
    judgeExperts(noErrors(), general, [...EXPERTS.map((_, k) => (k === 1 ? 1 : 3)), 2], 1, 1)
  const advice = [...EXPERTS.map((_, k) => (k === 1 ? 5 : 8)), 7]
  assert.ok(Math.abs(lookAgain(general, advice, everyone) - 5) < 0.01)
  assert.equal(lookAgain(noErrors(), advice, everyone), 7, 'before that, all together')
})

/** A normal spread, by Box and Muller. */
const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

for (const [what, believed, actual] of [
  ['as believed', 1.28, 1],
  ['far wider than believed', 0.2, 1],
  ['far narrower than believed', 3, 0.3],
] as const) {
  test(`nine of ten executions stay below their p90, where runtimes spread ${what}`, () => {
    const random = createRandom(11)
    const stretch = initialStretch()
    const below: number[] = []
    for (let n = 0; n < 6_000; n++) {
      const above = actual * normal(random)
      below.push(above <= spreadP90(believed, stretch) ? 1 : 0)
      calibrate(stretch, believed, above)
      assert.ok(spreadP99(believed, stretch) > 0)
    }
    const coverage = below.slice(-2_000).reduce((sum, one) => sum + one, 0) / 2_000
    assert.ok(coverage > 0.88 && coverage < 0.92, `${coverage}`)
  })
}

const says =
  (residual: number, spread = 9) =>
  () => ({ p50: residual, p90: residual + spread })
const MOST_SHIFT = Math.log(1.024)

/** A series with a median of e^6.6 ms, whose last two runs took e^7.4 ms. All that has been seen of the network is that it is never wrong. */
const trusting = (): SeriesView => {
  const memory = emptyMemory()
  for (const log of [6.6, 6.6, 6.6, 7.4, 7.4]) {
    rememberRun(memory, { log, sizeLog: 5, timeoutLog: 0, cpuLog: 0.7, gapLog: 0, hour: 0 }, 1)
  }
  const errors = [...EXPERTS.map((expert) => (expert === 'lstm' ? 0 : 40)), 20]
  const org = emptyOrgMemory()
  Object.assign(org.general[maturityOf(40)] ?? assert.fail(), {
    errors: errors.map((error) => 10 * error),
    weight: 400,
  })
  const estimate = { runs: 40, meanLog: 7.05, deviationLog: 0.1 }
  return { ...nothingKnown(), memory: { ...memory, errors, weight: 40 }, estimate, org }
}

test("a network that knows others' runs moves no quantile by more than a factor of 1.024", () => {
  for (const view of [nothingKnown(), trusting()]) {
    const own = predictRuntime(view, JOB, undefined)
    for (const residual of [-40, -8, -0.01, 0, 0.01, 8, 40]) {
      for (const spread of [-9, 0, 0.1, 9, 40]) {
        const shifted = predictRuntime(view, JOB, says(residual, spread))
        for (const name of ['p50Log', 'p90Log', 'p99Log'] as const) {
          const [was, is] = [own[name] ?? 0, shifted[name] ?? 0]
          assert.ok(Math.abs(is - was) <= MOST_SHIFT + 1e-12, `${name} went from ${was} to ${is}`)
        }
        assert.ok(shifted.p90Log >= shifted.p50Log && (shifted.p99Log ?? 40) >= shifted.p90Log)
        assert.deepEqual([shifted.spreadLog, shifted.source], [own.spreadLog, own.source])
      }
    }
  }
  assert.ok(
    Math.abs(
      predictRuntime(trusting(), JOB, says(8)).p50Log - predictRuntime(trusting(), JOB, says(-8)).p50Log,
    ) >
      1.9 * MOST_SHIFT,
    'it has a say',
  )
})

test("what is learned from an execution does not depend on a network that knows others' runs", () => {
  const learned = (residual: number) => {
    const { advice, ownP50Log, spreadLog } = predictRuntime(trusting(), JOB, says(residual)).sample
    return { own: advice.filter((_, n) => EXPERTS[n] !== 'lstm'), ownP50Log, spreadLog }
  }
  assert.deepEqual(learned(8), learned(-8))
})

test('an own network is free to say anything between what the other experts say', () => {
  for (const residual of [-8, 8]) {
    const alone = predictRuntime(nothingKnown(), JOB, undefined)
    const { p50Log, p90Log } = predictRuntime(nothingKnown(), JOB, says(residual), true)
    assert.deepEqual([p50Log, p90Log], [alone.p50Log, alone.p90Log], 'a newcomer does not notice')
    const trusted = predictRuntime(trusting(), JOB, says(residual), true)
    assert.ok(Math.abs(trusted.p50Log - (residual < 0 ? 6.6 : 7.4)) < 1e-3, `${trusted.p50Log}`)
    assert.equal(trusted.sample.ownP50Log, trusted.p50Log, 'and its predictions are what is learned from')
    assert.equal(trusted.source, 'lstm')
  }
})

type Series = { view: SeriesView; job: JobTraits }

/** Each execution is predicted, and then learned from, as the product does it. */
const follow = (runtimeOf: (n: number, random: () => number) => { log: number; sizeLog?: number }) => {
  const random = createRandom(3)
  const org = emptyOrgMemory()
  const series = Array.from(
    { length: 5 },
    (_, n): Series => ({
      view: { ...nothingKnown(), org },
      job: { ...JOB, name: `series ${n}` },
    }),
  )
  const judged: { log: number; prediction: RuntimePrediction }[] = []
  for (let n = 0; n < 600; n++) {
    for (const { view, job } of series) {
      const { log, sizeLog = JOB.sizeLog } = runtimeOf(n, random)
      const atS = JOB.submittedAtS + n * 600
      const prediction = predictRuntime(view, { ...job, sizeLog, submittedAtS: atS }, undefined)
      judged.push({ log, prediction })
      learn(view, prediction, log, atS)
    }
  }
  return judged
}

const NOTHING: Estimate = { runs: 0, meanLog: 0, deviationLog: 0 }

const learn = (view: SeriesView, { sample }: RuntimePrediction, log: number, atS: number): void => {
  const { memory, org } = view
  memory.seen++
  if (memory.errors.length === 0) Object.assign(memory, noErrors())
  const general = org.general[maturityOf(sample.runs)] ?? noErrors()
  judgeExperts(memory, general, sample.advice, log, memory.seen - sample.seen)
  calibrate(org.stretch, sample.spreadLog, log - sample.ownP50Log)
  const { sizeLog, timeoutLog, cpuLog, gapLog } = sample
  rememberRun(memory, { log, sizeLog, timeoutLog, cpuLog, gapLog, hour: hourOf(atS) }, atS + 10)
  view.estimate = foldSample(view.estimate ?? NOTHING, { runs: 1, meanLog: log, spreadLog: 0 })
  view.lastSubmittedAtS = atS
}

const WORKLOADS: Record<string, Parameters<typeof follow>[0]> = {
  constant: () => ({ log: 7 }),
  drifting: (n, random) => ({ log: 5 + n / 100 + 0.1 * normal(random) }),
  bimodal: (_, random) => ({ log: random() < 0.8 ? 5 : 9 }),
  'of many sizes': (_, random) => {
    const sizeLog = 4 + 2 * Math.floor(4 * random())
    return { log: sizeLog + 0.1 * normal(random), sizeLog }
  },
  noisy: (_, random) => ({ log: 7 + 1.5 * normal(random) }),
}

for (const [kind, runtimeOf] of Object.entries(WORKLOADS)) {
  test(`${kind}: never worse than the best expert by more than a sliver, and nine of ten below the p90`, (t) => {
    const judged = follow(runtimeOf).slice(500)
    const errorOf = (predicted: (one: RuntimePrediction) => number) =>
      judged.reduce((sum, { log, prediction }) => sum + Math.abs(predicted(prediction) - log), 0) /
      judged.length
    const experts = EXPERTS.slice(0, -1).map((name, n) => ({
      name,
      error: errorOf(({ sample }) => sample.advice[n] ?? 0),
    }))
    const best = experts.reduce((a, b) => (a.error < b.error ? a : b))
    const shipped = errorOf(({ p50Log }) => p50Log)
    t.diagnostic(`${shipped.toFixed(4)}, and the best, ${best.name}, ${best.error.toFixed(4)}`)
    assert.ok(shipped <= best.error * 1.03 + 0.005, `${shipped} and ${best.name} ${best.error}`)
    if (kind === 'constant') return
    const newest = judged.slice(-2_000)
    const coverage = newest.filter(({ log, prediction }) => log <= prediction.p90Log).length / newest.length
    assert.ok(coverage > 0.88 && coverage < 0.92, `${coverage}`)
  })
}
