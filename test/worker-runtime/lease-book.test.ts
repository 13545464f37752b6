import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createLeaseBook, type LeaseBook } from '../../worker-runtime/lease-book.ts'

let book: LeaseBook
beforeEach(() => {
  book = createLeaseBook()
  book.open('1', 3, 0)
})

test('a lease is closed by the last of its jobs, in one group or in several', () => {
  assert.deepEqual(book.closedBy(['1', '1']), [])
  assert.deepEqual(book.closedBy(['1', '1', '1']), ['1'])
  book.leave('1', 'recorded')
  assert.deepEqual(book.closedBy(['1', '1']), ['1'])
})

test('a lease that one of its jobs was abandoned in is not closed: the watchdog needs it', () => {
  book.leave('1', 'abandoned')
  assert.deepEqual(book.closedBy(['1', '1']), [])
})

test('a lease without jobs is forgotten', () => {
  for (let n = 0; n < 3; n++) book.leave('1', 'recorded')
  assert.deepEqual(book.closedBy(['1']), [])
})
