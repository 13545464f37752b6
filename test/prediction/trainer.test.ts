import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import '@tensorflow/tfjs-backend-cpu'
import * as tf from '@tensorflow/tfjs-core'
import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import {
  type Batch,
  computeGradients,
  createTrainer,
  type Trainer,
} from '../../functions/prediction/lstm/trainer.ts'
import { createWeights, PARAMETERS } from '../../functions/prediction/lstm/weights.ts'
import { useWasmBackend } from '../../worker-runtime/learning/wasm-backend.ts'
import { assertNear } from './assert-near.ts'
import { numbers, SMALL, sampleBatch, trainedWeights } from './samples.ts'

before(useWasmBackend)

const QUANTILES = [0.5, 0.9]

/** Four sequences whose target is the input of two steps before: nothing but memory can know it. */
const echo = (): Batch => {
  const [steps, size] = [12, 4]
  const inputs = numbers(steps * size, 5)
  const targets = inputs.map((_, n) => inputs[n - 2 * size] ?? 0)
  const weights = new Float32Array(steps * size).fill(1)
  return { steps, size, inputs, targets, weights, initialState: new Float32Array(size * 4 * 16) }
}

test('it learns a small set by heart, and what it learned predicts it', () => {
  const trainer = createTrainer({
    weights: createWeights({ inputs: 1, hidden: 16, heads: 2 }, 1),
    learningRate: 0.02,
  })
  const batch = echo()
  const { loss: atFirst } = trainer.step(batch)
  let last = atFirst
  for (let n = 0; n < 400; n++) last = trainer.step(batch).loss
  assert.ok(last < atFirst / 10, `the loss fell from ${atFirst} to ${last}`)

  const predictor = createPredictor(trainer.weights())
  let state = batch.initialState
  for (let t = 0; t < batch.steps; t++) {
    const answer = predictor.step(batch.inputs.slice(4 * t, 4 * t + 4), state)
    state = answer.state
    const medians = answer.outputs.filter((_, n) => n % 2 === 0)
    assertNear(medians, batch.targets.slice(4 * t, 4 * t + 4), 0.15, `step ${t}`)
  }
  predictor.dispose()
})

test('the heads learn the quantiles that they are given', () => {
  const [steps, size] = [1, 500]
  const weights = createWeights({ inputs: 1, hidden: 2, heads: 3 }, 1)
  const trainer = createTrainer({ weights, quantiles: [0.1, 0.5, 0.9], learningRate: 0.02 })
  const inputs = new Float32Array(size)
  const initialState = new Float32Array(size * 8)
  const all = new Float32Array(size).fill(1)
  for (let n = 0; n < 300; n++) {
    trainer.step({ steps, size, inputs, targets: numbers(size, n), weights: all, initialState })
  }
  const predictor = createPredictor(trainer.weights())
  // Targets are even between −1 and 1.
  assertNear(predictor.step(new Float32Array(1), new Float32Array(8)).outputs, [-0.8, 0, 0.8], 0.1)
  predictor.dispose()
})

test('the same seed and the same batches give the same weights, to the bit', () => {
  const train = (seed: number) => {
    const trainer = createTrainer({ weights: createWeights(SMALL, seed) })
    for (let n = 0; n < 20; n++) trainer.step(sampleBatch(SMALL, 4, 3, n))
    return trainer.weights()
  }
  assert.deepEqual(train(1), train(1))
  assert.notDeepEqual(train(1), train(2))
})

test('a trainer goes on where another left off, to the bit', () => {
  const trainOn = (trainer: Trainer, from: number, to: number) => {
    for (let n = from; n < to; n++) trainer.step(sampleBatch(SMALL, 4, 3, n))
    return trainer
  }
  const first = trainOn(createTrainer({ weights: createWeights(SMALL, 1) }), 0, 10)
  const [weights, optimiser] = [first.weights(), first.optimiser()]
  trainOn(first, 10, 20)
  const second = trainOn(createTrainer({ weights, optimiser }), 10, 20)
  assert.deepEqual(second.weights(), first.weights())
  assert.deepEqual(second.optimiser(), first.optimiser())
  const third = trainOn(createTrainer({ weights, optimiser }), 10, 20)
  assert.deepEqual(third.weights(), first.weights(), 'what was taken has not been changed by whoever used it')
  const forgetful = trainOn(createTrainer({ weights }), 10, 20)
  assert.notDeepEqual(forgetful.weights(), first.weights())
})

test('the weights it was given and those it gave stay as they are', () => {
  const given = createWeights(SMALL, 1)
  const trainer = createTrainer({ weights: given })
  const taken = trainer.weights()
  trainer.step(sampleBatch(SMALL, 4, 3, 1))
  assert.deepEqual(given, createWeights(SMALL, 1))
  assert.deepEqual(taken, given)
  assert.notDeepEqual(trainer.weights(), given)
})

test('a thousand training steps leave no tensor behind', () => {
  const trainer = createTrainer({ weights: createWeights(SMALL, 1) })
  const batch = sampleBatch(SMALL, 4, 3, 1)
  trainer.step(batch)
  const { numTensors, numDataBuffers } = tf.memory()
  for (let n = 0; n < 1_000; n++) trainer.step(batch)
  assert.equal(tf.memory().numTensors, numTensors)
  assert.equal(tf.memory().numDataBuffers, numDataBuffers)
})

test('a gradient above the clip is scaled down to it, all weights alike', () => {
  const weights = trainedWeights(SMALL, 1)
  const batch = sampleBatch(SMALL, 4, 3, 1)
  const moved = (clipNorm: number) => {
    const trainer = createTrainer({ weights, clipNorm, learningRate: 1e-3 })
    const { gradientNorm } = trainer.step(batch)
    return { gradientNorm, weights: trainer.weights() }
  }
  const [clipped, unclipped] = [moved(1e-9), moved(1e9)]
  assert.equal(clipped.gradientNorm, unclipped.gradientNorm)
  const { gradients } = computeGradients(weights, batch, QUANTILES)
  const norm = Math.hypot(...PARAMETERS.flatMap((name) => [...gradients[name]]))
  assertNear([clipped.gradientNorm], [norm], 1e-6)
  // Adam divides by the gradient's own size: a first step is the learning rate long unless ε counts, as it does at 1e-9.
  const distance = (from: Float32Array, to: Float32Array) => Math.abs((to[0] as number) - (from[0] as number))
  assert.ok(distance(weights.parameters.by, unclipped.weights.parameters.by) > 9e-4)
  assert.ok(distance(weights.parameters.by, clipped.weights.parameters.by) < 1e-4)
})

test('CPU and WASM find the same gradients', async () => {
  const shape = { inputs: 20, hidden: 32, heads: 2 }
  const weights = trainedWeights(shape, 1)
  const batch = sampleBatch(shape, 5, 7, 1)
  const onWasm = computeGradients(weights, batch, QUANTILES)
  await tf.setBackend('cpu')
  const onCpu = computeGradients(weights, batch, QUANTILES)
  await tf.setBackend('wasm')
  assertNear([onWasm.loss], [onCpu.loss], 1e-6)
  for (const name of PARAMETERS) assertNear(onWasm.gradients[name], onCpu.gradients[name], 1e-5, name)
})

test('a batch with a value that is not a number teaches nothing, and says so', () => {
  const trainer = createTrainer({ weights: trainedWeights(SMALL, 1) })
  const batch = sampleBatch(SMALL, 4, 3, 1)
  batch.inputs[5] = Number.NaN
  const { loss, gradientNorm } = trainer.step(batch)
  assert.ok(Number.isNaN(loss) && Number.isNaN(gradientNorm))
  assert.deepEqual(trainer.weights(), trainedWeights(SMALL, 1))
})

test('a batch whose arrays do not fit its sizes is refused', () => {
  const trainer = createTrainer({ weights: createWeights(SMALL, 1) })
  const batch = sampleBatch(SMALL, 4, 3, 1)
  assert.throws(() => trainer.step({ ...batch, inputs: batch.inputs.subarray(1) }), /no matrix of 12 × 3/)
  assert.throws(() => trainer.step({ ...batch, initialState: new Float32Array(16) }), /not 3 states/)
  assert.throws(() => trainer.step({ ...batch, targets: batch.targets.subarray(1) }), /11 targets/)
  assert.throws(() => trainer.step({ ...batch, weights: batch.weights.subarray(1) }), /11 weights/)
  assert.equal(typeof trainer.step(batch).loss, 'number')
})

test('as many quantiles as heads, or nothing is trained', () => {
  const weights = createWeights(SMALL, 1)
  assert.throws(() => createTrainer({ weights, quantiles: [0.5] }), /1 quantiles for 2 heads/)
})
