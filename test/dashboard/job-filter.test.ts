import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actionsFor, filterOf, fits } from '../../functions/dashboard/views/jobs/filter.ts'
import { rowWindow } from '../../functions/dashboard/views/jobs/row-window.ts'
import { idOf, rowOf } from '../support/job-rows.ts'

const query = (text: string) => filterOf(new URLSearchParams(text))

test('an address says which jobs are shown, and what no API would understand is left out', () => {
  assert.deepEqual(query('status=failed&type=http&text=%20nightly%20&submit=new'), {
    status: 'failed',
    type: 'http',
    text: 'nightly',
  })
  assert.deepEqual(query('status=lost&priority=urgent&tag='), {})
})

test('a text is a part of the name in any case, a tag, or the id', () => {
  const job = { ...rowOf(7), name: 'Nightly-Report', tags: ['Sales'] }
  assert.ok(fits({ text: 'nightly-r' }, job))
  assert.ok(fits({ text: 'Sales' }, job))
  assert.ok(fits({ text: idOf(7).toUpperCase() }, job))
  assert.ok(!fits({ text: 'sales' }, job))
  assert.ok(!fits({ text: 'weekly' }, job))
})

test('all fields of a filter must hold', () => {
  const job = { ...rowOf(7), tags: ['a'] }
  assert.ok(fits({ status: 'ready', type: 'http', tag: 'a', priority: 'normal', name: 'job-7' }, job))
  assert.ok(!fits({ status: 'ready', tag: 'b' }, job))
  assert.ok(!fits({ name: 'job' }, job))
})

test('only what can be done with the jobs that match is offered', () => {
  assert.deepEqual(actionsFor({}), [])
  assert.deepEqual(actionsFor({ type: 'http' }), ['cancel', 'retry'])
  assert.deepEqual(actionsFor({ status: 'running' }), ['cancel'])
  assert.deepEqual(actionsFor({ status: 'failed' }), ['retry'])
  assert.deepEqual(actionsFor({ status: 'completed' }), [])
})

test('rows around the screen are drawn, however many there are', () => {
  const sizes = { screen: 800, rowHeight: 40, rows: 10_000 }
  assert.deepEqual(rowWindow({ ...sizes, above: -300 }), { first: 0, end: 24 })
  const middle = rowWindow({ ...sizes, above: 200_000 })
  assert.ok(middle.first <= 5_000 - 8 && middle.end >= 5_020 + 8 && middle.end - middle.first <= 48)
  assert.equal(rowWindow({ ...sizes, above: 399_200 }).end, 10_000)
  assert.deepEqual(rowWindow({ ...sizes, above: 0, rows: 3 }), { first: 0, end: 3 })
  assert.deepEqual(rowWindow({ ...sizes, above: 90_000, rows: 0 }), { first: 0, end: 0 })
})
