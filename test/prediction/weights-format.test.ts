import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWeights, parameterShapes } from '../../functions/prediction/lstm/weights.ts'
import {
  CorruptWeights,
  parseWeights,
  serializeWeights,
} from '../../functions/prediction/lstm/weights-format.ts'
import { SMALL, trainedWeights } from './samples.ts'

const weights = trainedWeights(SMALL, 1)
const bytes = serializeWeights(weights)

const refused = (source: Uint8Array, reason?: RegExp): void => {
  assert.throws(
    () => parseWeights(source),
    (error) => error instanceof CorruptWeights && (!reason || reason.test(error.message)),
  )
}

test('weights survive the way to bytes and back, wherever the bytes lie', () => {
  assert.deepEqual(parseWeights(bytes), weights)
  const shifted = new Uint8Array(bytes.length + 3)
  shifted.set(bytes, 3)
  assert.deepEqual(parseWeights(shifted.subarray(3)), weights)
  assert.deepEqual(parseWeights(Buffer.from(bytes)), weights)
})

test('weights that were parsed do not change with the bytes', () => {
  const source = bytes.slice()
  const parsed = parseWeights(source)
  source.fill(0)
  assert.deepEqual(parsed, weights)
})

test('the weights of 64 inputs and 32 hidden units take 84 kB', () => {
  assert.equal(serializeWeights(createWeights({ inputs: 64, hidden: 32, heads: 2 }, 1)).length, 83_744)
})

test('a changed byte is noticed, whichever it is', () => {
  for (let n = 0; n < bytes.length; n++) {
    const damaged = bytes.slice()
    damaged[n] = (damaged[n] as number) ^ 0x10
    refused(damaged)
  }
})

test('bytes too few, too many or of something else are refused', () => {
  refused(new Uint8Array(), /0 bytes/)
  refused(bytes.subarray(0, 20))
  refused(bytes.subarray(0, -1), /instead of/)
  refused(Uint8Array.of(...bytes, 0), /instead of/)
  refused(new TextEncoder().encode('{"weights": "none, sorry"}'), /not weights/)
})

test('weights that are not numbers are refused', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const { parameters } = trainedWeights(SMALL, 1)
    parameters.Wh2[5] = value
    refused(serializeWeights({ shape: SMALL, parameters }), /Wh2 has values that are not numbers/)
  }
})

test('a seed decides the weights', () => {
  assert.deepEqual(createWeights(SMALL, 7), createWeights(SMALL, 7))
  assert.notDeepEqual(createWeights(SMALL, 7), createWeights(SMALL, 8))
})

test('forget gates start open and the heads at zero', () => {
  const { parameters } = createWeights(SMALL, 7)
  assert.deepEqual([...parameters.b1], [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
  assert.deepEqual(parameters.b2, parameters.b1)
  assert.ok([...parameters.Wy, ...parameters.Wd, ...parameters.by].every((value) => value === 0))
  assert.deepEqual(parameterShapes(SMALL).Wx1, [3, 16])
})
