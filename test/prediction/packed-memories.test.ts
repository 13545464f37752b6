import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import {
  emptyOrgMemory,
  packOrgMemory,
  unpackOrgMemory,
} from '../../functions/prediction/model/org-memory.ts'
import { createReader, createWriter } from '../../functions/prediction/model/packing.ts'
import { packSample, unpackSample } from '../../functions/prediction/model/sample.ts'
import {
  emptyMemory,
  packMemory,
  packTypeMemory,
  REMEMBERED_RUNS,
  rememberRun,
  type SeriesMemory,
  unpackMemory,
  unpackTypeMemory,
} from '../../functions/prediction/model/series-memory.ts'
import { sampleWith } from '../support/lessons.ts'

/** Numbers that two bytes hold exactly. */
const exact = (n: number): number => ((n * 7919) % 30_000) / 1024

const memoryWith = (runs: number): SeriesMemory => {
  const memory = { ...emptyMemory(), seen: 12_345, weight: 2.5, errors: EXPERTS.map((_, n) => n / 4) }
  memory.state = Float32Array.from({ length: 128 }, (_, n) => exact(n) / 32)
  for (let n = 0; n < runs; n++) {
    const run = {
      log: exact(n),
      sizeLog: exact(n + 1),
      timeoutLog: 0,
      cpuLog: 1,
      gapLog: exact(n + 2),
      hour: 23.5,
    }
    rememberRun(memory, run, 1_800_000_000 + n)
  }
  return memory
}

for (const runs of [0, 1, REMEMBERED_RUNS, REMEMBERED_RUNS + 5]) {
  test(`a series of ${runs} executions is remembered as it was packed`, () => {
    const memory = memoryWith(runs)
    memory.state = memory.state.map((value) => Math.round(value * 1024) / 1024)
    assert.deepEqual(unpackMemory(packMemory(memory)), memory)
    assert.equal(memory.runs.length, Math.min(runs, REMEMBERED_RUNS))
  })
}

test('an empty memory, too, and one at any place in a buffer', () => {
  const bytes = packMemory(memoryWith(3))
  const within = new Uint8Array(bytes.length + 3)
  within.set(bytes, 3)
  assert.deepEqual(unpackMemory(within.subarray(3)), unpackMemory(bytes))
  assert.deepEqual(unpackMemory(packMemory(emptyMemory())), emptyMemory())
})

test('what is no memory is an empty one', () => {
  const bytes = packMemory(memoryWith(3))
  for (const wrong of [
    new Uint8Array(0),
    bytes.subarray(0, bytes.length - 1),
    bytes.map((b, n) => (n ? b : 99)),
  ]) {
    assert.deepEqual(unpackMemory(wrong), emptyMemory())
  }
})

test('what a prediction saw is kept to a thousandth, whatever it was', () => {
  const x = Float32Array.from({ length: INPUTS }, (_, n) => Math.sin(n))
  const advice = Array.from({ length: EXPERTS.length + 1 }, (_, n) => n / 3)
  const sample = sampleWith({ x, advice, runs: 1_000_000, gapLog: 17.123456 })
  const kept = unpackSample(packSample(sample))
  assert.ok(kept)
  assert.deepEqual([kept.runs, kept.submittedAtS], [sample.runs, sample.submittedAtS])
  const numbers = (of: typeof sample) => [
    of.baseLog,
    of.p50Log,
    of.spreadLog,
    of.p90Log,
    of.gapLog,
    ...of.advice,
    ...of.x,
  ]
  numbers(sample).forEach((value, n) => {
    assert.ok(Math.abs((numbers(kept)[n] ?? 0) - value) <= 1 / 2048, `number ${n}`)
  })
  const extreme = unpackSample(packSample(sampleWith({ p50Log: 1e9, spreadLog: Number.NaN, gapLog: -1e9 })))
  assert.deepEqual(
    [extreme?.spreadLog, Math.round(extreme?.p50Log ?? 0), Math.round(extreme?.gapLog ?? 0)],
    [0, 32, -32],
  )
})

test('a sample of another release is none', () => {
  const bytes = packSample(sampleWith())
  assert.equal(unpackSample(bytes.subarray(1)), undefined)
  assert.equal(unpackSample(bytes.map((byte, n) => (n === 0 ? 77 : byte))), undefined)
})

test('what is remembered of an organisation is read as it was packed, and of another release is begun anew', () => {
  const memory = emptyOrgMemory()
  memory.stretch = { p90: 0.25, p99: -1.5, seen: 77 }
  memory.general.forEach((known, n) => {
    known.weight = n
    known.errors = known.errors.map((_, k) => k / 8)
  })
  const bytes = packOrgMemory(memory)
  assert.deepEqual(unpackOrgMemory(bytes), memory)
  for (const wrong of [
    new Uint8Array(0),
    bytes.subarray(0, 20),
    bytes.map((b, n) => (n === 1 ? b + 1 : b)),
  ]) {
    assert.deepEqual(unpackOrgMemory(wrong), emptyOrgMemory())
  }
})

test("what is remembered of an organisation's type is read as it was packed", () => {
  const run = { log: 5, sizeLog: 1, timeoutLog: 2, cpuLog: 0.5, gapLog: 3, hour: 23.5 }
  const memory = { newest: [run, { ...run, log: 6 }], sampled: [5, 6.25, 7] }
  const bytes = packTypeMemory(memory)
  assert.deepEqual(unpackTypeMemory(bytes), memory)
  const nothing = { newest: [], sampled: [] }
  for (const wrong of [
    new Uint8Array(0),
    bytes.subarray(0, 20),
    bytes.map((b, n) => (n === 0 ? b + 1 : b)),
  ]) {
    assert.deepEqual(unpackTypeMemory(wrong), nothing)
  }
})

test('numbers are read in the order in which they were written, and not beyond the end', () => {
  const writer = createWriter(32)
  writer.byte(255)
  writer.short(65_535)
  writer.float(-0.5)
  writer.double(Math.PI)
  writer.fixed(-31.5)
  writer.fixed(Number.POSITIVE_INFINITY)
  const reader = createReader(writer.bytes())
  assert.deepEqual(
    [reader.byte(), reader.short(), reader.float(), reader.double(), reader.fixed()],
    [255, 65_535, -0.5, Math.PI, -31.5],
  )
  assert.ok(reader.fixed() > 31.9)
  assert.throws(reader.byte, RangeError)
})
