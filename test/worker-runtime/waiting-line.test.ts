import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWaitingLine } from '../../worker-runtime/waiting-line.ts'

test('a line is left at the front in order, at the end in order, and in the middle', () => {
  const line = createWaitingLine<number>()
  for (let n = 0; n < 1_000; n++) line.add(n)
  for (let n = 0; n < 700; n++) {
    assert.equal(line.first(), n)
    line.shift()
  }
  assert.equal(line.length(), 300)
  assert.deepEqual(line.takeLast(3), [997, 998, 999])
  line.remove(700)
  line.remove(5)
  assert.deepEqual([line.length(), line.first()], [296, 701])
  assert.deepEqual(
    line.takeWhere((n) => n < 703),
    [701, 702],
  )
  assert.deepEqual([line.length(), line.first()], [294, 703])
  line.add(7)
  assert.equal(line.takeLast(0).length, 0)
  assert.deepEqual(line.takeLast(1_000).slice(-2), [996, 7])
  assert.deepEqual([line.length(), line.first(), line.takeLast(1)], [0, undefined, []])
})
