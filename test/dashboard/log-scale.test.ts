import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationScale } from '../../functions/dashboard/charts/log-scale.ts'
import { apart, linearScale } from '../../functions/dashboard/charts/scale.ts'

const labels = ({ ticks }: { ticks: readonly { label: string }[] }): string[] =>
  ticks.map(({ label }) => label)

test('the same factor is the same distance everywhere on a logarithmic axis', () => {
  const { place } = durationScale([2, 3_000_000])
  assert.ok(Math.abs(place(10) - place(1) - (place(1_000_000) - place(100_000))) < 1e-9)
})

test('all values stand on the axis, with room around them', () => {
  const values = [3, 40, 500, 7_000_000]
  const { place } = durationScale(values)
  for (const value of values) assert.ok(place(value) > 0 && place(value) < 1, `${value} ms`)
  assert.ok(place(3) < 0.05 && place(7_000_000) > 0.95)
})

test('ticks have units, in milliseconds, seconds, minutes, hours and days', () => {
  assert.deepEqual(labels(durationScale([0.9, 4_000_000])), [
    ...['1 ms', '10 ms', '100 ms', '1 s', '10 s', '1 min', '10 min', '1 h'],
  ])
  assert.deepEqual(labels(durationScale([2_000_000, 500_000_000])), ['1 h', '6 h', '1 d'])
})

test('values that are all alike get an axis of two powers of ten, with themselves in the middle', () => {
  const scale = durationScale([250, 250, 250])
  assert.ok(Math.abs(scale.place(250) - 0.5) < 1e-9)
  assert.deepEqual(labels(scale), ['100 ms', '1 s'])
})

test('wherever the values lie, there are at least two ticks', () => {
  for (let ms = 0.1; ms < 8_000_000_000; ms *= 1.3)
    assert.ok(durationScale([ms]).ticks.length >= 2, `${ms} ms`)
})

test('a runtime of zero stands at the beginning and breaks nothing', () => {
  const { place, ticks } = durationScale([0, 100])
  assert.ok(Number.isFinite(place(0)) && place(0) >= 0)
  assert.equal(ticks[0]?.label, '0.1 ms')
})

test('without values there is an axis all the same', () => {
  assert.deepEqual(labels(durationScale([])), ['1 ms', '10 ms', '100 ms', '1 s', '10 s', '1 min'])
})

test('a linear axis has round steps up to its largest value', () => {
  const scale = linearScale(0.43, (value) => value.toFixed(1))
  assert.deepEqual(labels(scale), ['0.0', '0.1', '0.2', '0.3', '0.4', '0.5'])
  assert.equal(scale.place(scale.end), 1)
  assert.deepEqual(labels(linearScale(1_000, String)), ['0', '200', '400', '600', '800', '1000'])
})

test('a linear axis of nothing but zeros goes to one', () => {
  assert.equal(linearScale(0, String).end, 1)
})

test('ticks that would stand on each other are left out', () => {
  assert.deepEqual(
    apart(linearScale(10, String, 10), 0.25).map(({ label }) => label),
    ['0', '3', '6', '9'],
  )
})
