import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelVersion } from '../../functions/dashboard/api/answers.ts'
import {
  isLate,
  looksOf,
  nearest,
  p90Line,
  type Sample,
} from '../../functions/dashboard/views/model/scatter-data.ts'
import { decisionOf, firstJudgementOf, judgementOf } from '../../functions/dashboard/views/model/words.ts'

const version = (evaluation: Record<string, unknown>, parent: number | null = 1): ModelVersion => ({
  ...{ version: 2, parent, status: 'retired', trained_on: 150, evaluation },
  ...{ created_at: '2026-01-01T00:00:00Z', decided_at: null },
})

const COMPARED = { before: 0.5, after: 0.4, against: 1, executions: 1_200, z: 3.14 }

test('a promotion says how much better the version was, than which, and on what', () => {
  assert.equal(
    decisionOf(version({ ...COMPARED, kind: 'promoted' })),
    'Promoted: 20.0 % less error than version 1 on 1,200 executions, beyond doubt.',
  )
})

test('a challenger that was better by chance alone is told so', () => {
  assert.match(
    decisionOf(version({ ...COMPARED, z: 1.2, kind: 'rejected' })),
    /^Rejected: 20.0 % less .*chance/,
  )
  assert.match(
    decisionOf(version({ ...COMPARED, after: 0.6, kind: 'rejected' })),
    /^Rejected: 20.0 % more error/,
  )
})

test('a champion that fell has the errors of both the other way round', () => {
  const fallen = {
    ...COMPARED,
    kind: 'rolled_back',
    promotion: { ...COMPARED, kind: 'promoted', after: 0.3 },
  }
  assert.match(decisionOf(version(fallen)), /^Rolled back: version 1 did better/)
  assert.deepEqual([judgementOf(fallen)?.own, judgementOf(fallen)?.rival], [0.5, 0.4])
  assert.equal(firstJudgementOf(version(fallen))?.own, 0.3)
})

test('the first version, and one that cannot be read, need no numbers', () => {
  assert.match(decisionOf(version({}, null)), /^The first/)
  assert.match(decisionOf(version({ ...COMPARED, kind: 'promoted', unreadable: true })), /^Could not be read/)
  assert.equal(judgementOf({ kind: 'promoted', before: 'much' }), undefined)
})

const sample = (predicted_ms: number, actual_ms: number, type = 'http'): Sample => ({
  ...{ job_id: `${predicted_ms}`, name: 'x', type, predicted_ms, predicted_p90_ms: predicted_ms * 2 },
  ...{ actual_ms, at: '2026-01-01T00:00:00Z', source: 'series' },
})

test('the most frequent types have looks of their own, the rest shares one', () => {
  const types = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].flatMap((type, n) =>
    Array.from({ length: 10 - n }, () => sample(1, 1, type)),
  )
  const looks = looksOf(types)
  assert.deepEqual(
    looks.legend.map(({ label }) => label),
    ['a', 'b', 'c', 'd', 'e', 'f', 'other types'],
  )
  assert.equal(looks.of('g'), looks.of('h'))
  assert.equal(new Set(looks.legend.map(({ shape }) => shape)).size, 7)
})

test('the band of p90s goes from the smallest prediction to the largest', () => {
  const line = p90Line(Array.from({ length: 50 }, (_, n) => sample(n + 1, 1)))
  assert.deepEqual(
    [line[0], line.at(-1)],
    [
      { x: 1, y: 2 },
      { x: 50, y: 100 },
    ],
  )
  assert.deepEqual(p90Line([]), [])
})

test('a job is late if it took longer than its p90', () => {
  assert.deepEqual([isLate(sample(100, 200)), isLate(sample(100, 201))], [false, true])
})

test('the pointer finds the nearest point, and none that is out of reach', () => {
  const points = [
    { x: 0, y: 0 },
    { x: 10, y: 0 },
  ]
  assert.equal(nearest(points, { x: 7, y: 1 }, 24), 1)
  assert.equal(nearest(points, { x: 100, y: 0 }, 24), undefined)
})
