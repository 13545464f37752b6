import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../../functions/dashboard/api/refusal.ts'
import { faultsFor } from '../../functions/dashboard/ui/faults.ts'
import { readJson } from '../../functions/dashboard/ui/json-text.ts'

const refusal = (...errors: [pointer: string, detail: string][]): Refusal =>
  new Refusal(
    { title: 'Bad', detail: 'See below.', errors: errors.map(([pointer, detail]) => ({ pointer, detail })) },
    { status: 422 },
  )

test('what is wrong is said at the field that it concerns, with the place inside of it', () => {
  const error = refusal(
    ['#/job/payload/url', 'is required'],
    ['#/job/name', 'is too long'],
    ['#/job', 'is odd'],
  )
  assert.deepEqual(faultsFor(error, ['/job', '/job/name', '/job/payload']), {
    at: { '/job/payload': 'url: is required', '/job/name': 'is too long', '/job': 'is odd' },
    rest: undefined,
  })
})

test('two faults of one field are both said', () => {
  const { at } = faultsFor(refusal(['#/cron', 'is short'], ['#/cron', 'is odd']), ['/cron'])
  assert.equal(at['/cron'], 'is short · is odd')
})

test('what belongs to no field of the form is not lost', () => {
  const { at, rest } = faultsFor(refusal(['#/cron', 'is odd'], ['#/cronos', 'is unknown']), ['/cron'])
  assert.deepEqual(at, { '/cron': 'is odd' })
  assert.ok(rest instanceof Refusal)
  assert.deepEqual(rest.errors, [{ pointer: '#/cronos', detail: 'is unknown' }])
  const plain = new Refusal({ title: 'Conflict', detail: 'It is there already.' })
  assert.equal(faultsFor(plain, ['/cron']).rest, plain)
})

test('text that is no JSON is refused at its field', () => {
  assert.deepEqual(readJson('{"a": 1}', '/template'), { a: 1 })
  assert.throws(
    () => readJson('{"a": ', '/template'),
    (error: Refusal) => /^Is no JSON, line 1: /.test(faultsFor(error, ['/template']).at['/template'] ?? ''),
  )
})
