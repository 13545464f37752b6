import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import '@tensorflow/tfjs-backend-cpu'
import * as tf from '@tensorflow/tfjs-core'
import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import { serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
import { emptyOrgMemory } from '../../functions/prediction/model/org-memory.ts'
import { type Network, predictRuntime } from '../../functions/prediction/model/predict-runtime.ts'
import { emptyMemory } from '../../functions/prediction/model/series-memory.ts'
import { buildRuntimeModel, type PredictionRequest } from '../../functions/prediction/runtime-model.ts'
import { numbers, trainedWeights } from './samples.ts'

before(() => tf.setBackend('cpu'))

const WEIGHTS = trainedWeights({ inputs: INPUTS, hidden: 32, heads: 2 }, 3)
const CHAMPION = { version: 7, weights: serializeWeights(WEIGHTS), onlyOrg: 'own' }

const request = (n: number): PredictionRequest => ({
  view: {
    estimate: { runs: n, meanLog: 5 + n / 10, deviationLog: 0.4 },
    driftLog: 0,
    // Some have not been through the network, some through one of another width.
    memory: { ...emptyMemory(), state: numbers([128, 0, 64][n % 3] ?? 0, n) },
    orgType: undefined,
    sharedType: undefined,
    lastSubmittedAtS: 1_000,
    org: emptyOrgMemory(),
  },
  job: {
    type: 'http',
    name: `job ${n}`,
    sizeLog: n / 5,
    timeoutLog: 0,
    cpuLog: 0.7,
    memoryLog: 4,
    submittedAtS: 1_000 + n,
    depthLog: 0,
  },
})

test('jobs that are predicted together get the predictions that they get alone, as the backtest makes them', () => {
  const requests = Array.from({ length: 30 }, (_, n) => request(n))
  const model = buildRuntimeModel(CHAMPION)
  const together = model.predict(requests, 'own')
  const predictor = createPredictor(WEIGHTS)
  for (const [n, { view, job }] of requests.entries()) {
    const network: Network = (x, state) => {
      const { outputs } = predictor.step(x, state.length === 128 ? state : new Float32Array(128))
      return { p50: outputs[0] as number, p90: outputs[1] as number }
    }
    const alone = predictRuntime(view, job, network, true)
    const one = together[n]
    for (const name of ['p50Log', 'p90Log', 'residualLog'] as const) {
      assert.ok(Math.abs((one?.[name] ?? Number.NaN) - alone[name]) < 1e-5, `${name} of job ${n}`)
    }
    assert.ok(Math.abs((one?.spreadLog ?? Number.NaN) - alone.spreadLog) < 1e-5)
    assert.deepEqual([one?.source, one?.modelVersion], [alone.source, 7])
  }
  predictor.dispose()
  model.dispose()
})

test('a model that is let go leaves no tensor behind', () => {
  const atStart = tf.memory().numTensors
  const model = buildRuntimeModel(CHAMPION)
  model.predict([request(1), request(2)], 'own')
  model.dispose()
  model.dispose()
  assert.equal(tf.memory().numTensors, atStart)
})
