import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import '@tensorflow/tfjs-backend-cpu'
import * as tf from '@tensorflow/tfjs-core'
import { type Batch, computeGradients } from '../../functions/prediction/lstm/trainer.ts'
import {
  copyWeights,
  PARAMETERS,
  parameterShapes,
  type Weights,
} from '../../functions/prediction/lstm/weights.ts'
import { assertNear } from './assert-near.ts'
import { referenceLoss } from './reference.ts'
import { SMALL, sampleBatch, trainedWeights } from './samples.ts'
import './tfjs-files.ts'

const QUANTILES = [0.5, 0.9]
const weights = trainedWeights(SMALL, 1)
const plain = sampleBatch(SMALL, 6, 5, 2)
const masked: Batch = { ...plain, weights: plain.weights.map((weight, n) => (n % 3 === 0 ? 0 : weight)) }
const censored: Batch = {
  ...masked,
  censored: Uint8Array.from(plain.targets, (_, n) => (n % 2 === 0 ? 1 : 0)),
}
const BATCHES: [string, Batch][] = [
  ['all steps', plain],
  ['masked steps', masked],
  ['masked and censored steps', censored],
]

before(async () => {
  tf.enableProdMode()
  await tf.setBackend('cpu')
  // After tfjs-files.ts has taught Node to find its files, so not above.
  await import('@tensorflow/tfjs-core/dist/register_all_gradients.js')
})

for (const [name, batch] of BATCHES) {
  test(`the gradient of every weight is the slope of the loss, with ${name}`, () => {
    const { loss, gradients } = computeGradients(weights, batch, QUANTILES)
    assertNear([loss], [referenceLoss(weights, batch, QUANTILES)], 1e-6, 'loss')
    for (const parameter of PARAMETERS) {
      const slopes = Float64Array.from(gradients[parameter], (_, n) => numericSlope(parameter, n, batch))
      assertNear(gradients[parameter], slopes, 2e-6, parameter)
      assert.ok(
        slopes.every((slope) => slope !== 0),
        `${parameter} does something`,
      )
    }
  })

  test(`the gradient of every weight is that of tfjs's own differentiation, with ${name}`, () => {
    const { gradients } = computeGradients(weights, batch, QUANTILES)
    const expected = autodiff(weights, batch)
    for (const [n, parameter] of PARAMETERS.entries()) {
      assertNear(gradients[parameter], expected[n] as Float32Array, 2e-6, parameter)
    }
  })
}

test('a batch that is masked altogether has no loss and no gradient', () => {
  const nothing = { ...plain, weights: new Float32Array(plain.weights.length) }
  const { loss, gradients } = computeGradients(weights, nothing, QUANTILES)
  assert.equal(loss, 0)
  for (const parameter of PARAMETERS) assert.ok(gradients[parameter].every((value) => value === 0))
})

test('what a masked step holds changes nothing', () => {
  const poisoned = { ...masked, targets: masked.targets.map((target, n) => (n % 3 === 0 ? 1e6 : target)) }
  assert.deepEqual(
    computeGradients(weights, poisoned, QUANTILES),
    computeGradients(weights, masked, QUANTILES),
  )
})

test('an answer above a censored target costs nothing, one below it costs as always', () => {
  const everyStep = new Uint8Array(plain.targets.length).fill(1)
  const lossAt = (target: number, flags?: Uint8Array) => {
    const batch = { ...plain, targets: plain.targets.map(() => target), ...(flags && { censored: flags }) }
    return computeGradients(weights, batch, QUANTILES).loss
  }
  assert.equal(lossAt(-100, everyStep), 0)
  assert.ok(lossAt(-100) > 10)
  assert.equal(lossAt(100, everyStep), lossAt(100))
})

const STEP = 1e-4

/** In 64 bits, on the reference: the middle of a small step up and one down. */
const numericSlope = (parameter: (typeof PARAMETERS)[number], n: number, batch: Batch): number => {
  const lossWith = (change: number) => {
    const moved = copyWeights(weights)
    const values = Float64Array.from(weights.parameters[parameter])
    values[n] = (values[n] as number) + change
    const parameters = { ...moved.parameters, [parameter]: values }
    return referenceLoss({ ...moved, parameters }, batch, QUANTILES)
  }
  return (lossWith(STEP) - lossWith(-STEP)) / (2 * STEP)
}

/** The network as tfjs's users write it, step by step, and its gradient from tf.grads. */
const autodiff = ({ shape, parameters }: Weights, batch: Batch): Float32Array[] => {
  const { inputs: I, hidden: H } = shape
  const B = batch.size
  const shapes = parameterShapes(shape)
  const lossOf = (...tensors: tf.Tensor[]): tf.Scalar => {
    const [Wx1, Wh1, b1, Wx2, Wh2, b2, Wy, Wd, by] = tensors as [T, T, T, T, T, T, T, T, T]
    let [h1, c1, h2, c2] = tf.split(tf.tensor2d(batch.initialState, [B, 4 * H]), 4, 1) as [T, T, T, T]
    const losses: tf.Tensor[] = []
    for (let t = 0; t < batch.steps; t++) {
      const x = tf.tensor2d(batch.inputs.subarray(t * B * I, (t + 1) * B * I), [B, I])
      ;[h1, c1] = autodiffCell(x, [h1, c1], [Wx1, Wh1, b1])
      ;[h2, c2] = autodiffCell(h1, [h2, c2], [Wx2, Wh2, b2])
      losses.push(autodiffLoss(tf.add(tf.add(tf.matMul(h2, Wy), tf.matMul(x, Wd)), by), batch, t))
    }
    return tf.addN(losses) as tf.Scalar
  }
  const start = PARAMETERS.map((name) => tf.tensor2d(parameters[name], shapes[name]))
  return tf
    .grads(lossOf)(start)
    .map((gradient) => gradient.dataSync() as Float32Array)
}

type T = tf.Tensor2D

const autodiffCell = (x: T, [h, c]: [T, T], [Wx, Wh, b]: [T, T, T]): [T, T] => {
  const a = tf.add(tf.add(tf.matMul(x, Wx), tf.matMul(h, Wh)), b)
  const [i, f, o, g] = tf.split(a, 4, 1) as [T, T, T, T]
  const after = tf.add(tf.mul(tf.sigmoid(f), c), tf.mul(tf.sigmoid(i), tf.tanh(g)))
  return [tf.mul(tf.sigmoid(o), tf.tanh(after)) as T, after as T]
}

const autodiffLoss = (y: tf.Tensor, batch: Batch, t: number): tf.Tensor => {
  const B = batch.size
  const ofStep = (values: Float32Array | Uint8Array) =>
    tf.tensor2d(Float32Array.from(values.subarray(t * B, (t + 1) * B)), [B, 1])
  const e = tf.sub(ofStep(batch.targets), y) // (B, K)
  const q = tf.tensor2d(QUANTILES, [1, QUANTILES.length])
  // Of a censored target only the price of an answer too low is left: the other branch of the maximum becomes 0.
  const measured = tf.sub(1, ofStep(batch.censored ?? new Uint8Array(batch.targets.length)))
  const cost = tf.maximum(tf.mul(q, e), tf.mul(tf.mul(tf.sub(q, 1), e), measured))
  const totalWeight = batch.weights.reduce((sum, weight) => sum + weight, 0)
  return tf.sum(tf.mul(cost, tf.div(ofStep(batch.weights), totalWeight)))
}
