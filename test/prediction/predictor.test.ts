import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import '@tensorflow/tfjs-backend-cpu'
import * as tf from '@tensorflow/tfjs-core'
import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import { createWeights } from '../../functions/prediction/lstm/weights.ts'
import { serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { useWasmBackend } from '../../worker-runtime/learning/wasm-backend.ts'
import { startWorkerd } from '../support/workerd-host.ts'
import { assertNear } from './assert-near.ts'
import { inputsOfStep, KNOWN, knownWeights } from './known-answers.ts'
import { numbers, trainedWeights } from './samples.ts'

const SHAPE = { inputs: 64, hidden: 32, heads: 2 }

before(useWasmBackend)

for (const backend of ['cpu', 'wasm']) {
  describe(`on the backend ${backend}`, () => {
    before(() => tf.setBackend(backend))

    test('step by step the network answers what numpy answers', () => {
      const predictor = createPredictor(knownWeights)
      let state = Float32Array.from(KNOWN.initialState)
      for (let t = 0; t < KNOWN.steps; t++) {
        const answer = predictor.step(inputsOfStep(t), state)
        assertNear(answer.outputs, KNOWN.outputs[t] ?? [], 1e-6, `outputs of step ${t}`)
        assertNear(answer.state, KNOWN.states[t] ?? [], 1e-6, `state of step ${t}`)
        state = answer.state
      }
      predictor.dispose()
    })

    test('an untrained network answers exactly 0, whatever it sees', () => {
      const predictor = createPredictor(createWeights(SHAPE, 3))
      const { outputs, state } = predictor.step(numbers(5 * 64, 1, 10), numbers(5 * 128, 2))
      assert.deepEqual(outputs, new Float32Array(10))
      assert.ok(state.every((value) => value !== 0))
      predictor.dispose()
    })

    test('a thousand predictions leave no tensor behind', () => {
      const atStart = tf.memory().numTensors
      const predictor = createPredictor(trainedWeights(SHAPE, 3))
      const x = numbers(64, 1)
      let state = numbers(128, 2)
      predictor.step(x, state)
      const withWeights = tf.memory()
      for (let n = 0; n < 1_000; n++) state = predictor.step(x, state).state
      assert.equal(tf.memory().numTensors, withWeights.numTensors)
      assert.equal(tf.memory().numDataBuffers, withWeights.numDataBuffers)
      predictor.dispose()
      predictor.dispose()
      assert.equal(tf.memory().numTensors, atStart)
    })

    test('what a prediction returned does not change with the next one', () => {
      const predictor = createPredictor(trainedWeights(SHAPE, 3))
      const first = predictor.step(numbers(64, 1), numbers(128, 2))
      const copy = structuredClone(first)
      predictor.step(numbers(64, 5), first.state)
      assert.deepEqual(first, copy)
      predictor.dispose()
    })
  })
}

test('rows that are predicted together get the answers that they get alone', () => {
  const predictor = createPredictor(trainedWeights(SHAPE, 3))
  const [x, state] = [numbers(100 * 64, 1), numbers(100 * 128, 2)]
  const together = predictor.step(x, state)
  for (const n of [0, 42, 99]) {
    const alone = predictor.step(x.slice(n * 64, (n + 1) * 64), state.slice(n * 128, (n + 1) * 128))
    assertNear(alone.outputs, together.outputs.subarray(n * 2, (n + 1) * 2), 1e-6)
    assertNear(alone.state, together.state.subarray(n * 128, (n + 1) * 128), 1e-6)
  }
  predictor.dispose()
})

test('rows and states that do not fit each other are refused', () => {
  const predictor = createPredictor(trainedWeights(SHAPE, 3))
  assert.throws(() => predictor.step(new Float32Array(65), new Float32Array(128)), /states of 128/)
  assert.throws(() => predictor.step(new Float32Array(128), new Float32Array(128)), /not 2 states/)
  predictor.dispose()
})

describe('at the edge, on workerd', () => {
  const configPath = fileURLToPath(new URL('predictor-worker.toml', import.meta.url))
  let workerd: Awaited<ReturnType<typeof startWorkerd>>
  before(async () => {
    workerd = await startWorkerd({ configPath, vars: {} })
  })
  after(() => workerd.stop())

  test('the network answers what numpy answers', async () => {
    const weights = [...serializeWeights(knownWeights)]
    const body = JSON.stringify({ weights, x: [...inputsOfStep(0)], state: KNOWN.initialState })
    const response = await fetch(workerd.url, { method: 'POST', body })
    const { outputs, state } = (await response.json()) as Record<'outputs' | 'state', number[]>
    assertNear(outputs, KNOWN.outputs[0] ?? [], 1e-6, 'outputs')
    assertNear(state, KNOWN.states[0] ?? [], 1e-6, 'state')
  })
})

test('the WASM backend leaves it to the process what an uncaught error does', () => {
  const source = `
    const { useWasmBackend } = await import('${new URL('../../worker-runtime/learning/wasm-backend.ts', import.meta.url)}')
    const count = () => process.listenerCount('uncaughtException') + process.listenerCount('unhandledRejection')
    process.on('uncaughtException', () => {})
    const before = count()
    await useWasmBackend()
    console.log(before, count())`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', source], {
    encoding: 'utf8',
  })
  assert.equal(stdout, '1 1\n', stderr)
})

test('the WASM backend works in a worker thread', async () => {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads')
    Promise.all(workerData.modules.map((url) => import(url))).then(async ([backend, predicting]) => {
      await backend.useWasmBackend()
      const predictor = predicting.createPredictor(workerData.weights)
      parentPort.postMessage(predictor.step(workerData.x, workerData.state))
    })`
  const modules = [
    '../../worker-runtime/learning/wasm-backend.ts',
    '../../functions/prediction/lstm/predictor.ts',
  ].map((path) => new URL(path, import.meta.url).href)
  const state = Float32Array.from(KNOWN.initialState)
  const workerData = { modules, weights: knownWeights, x: inputsOfStep(0), state }
  const worker = new Worker(source, { eval: true, workerData })
  const answer = await new Promise<{ outputs: Float32Array }>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject)
  })
  await worker.terminate()
  assertNear(answer.outputs, KNOWN.outputs[0] ?? [], 1e-6)
})
