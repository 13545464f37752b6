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
  book.leave('1', 'completed')
  assert.deepEqual(book.closedBy(['1', '1']), ['1'])
})

test('a lease that one of its jobs was abandoned in is not closed: the watchdog needs it', () => {
  book.leave('1', 'abandoned')
  assert.deepEqual(book.closedBy(['1', '1']), [])
  assert.equal(book.jobsOf(['1']), null)
})

test('what completes leaves its lease as it was made, what ends otherwise does not', () => {
  book.open('2', 5, 0)
  book.leave('2', 'completed')
  assert.equal(book.jobsOf(['1', '2', '2']), 8)
  book.leave('2', 'ended otherwise')
  assert.equal(book.jobsOf(['1', '2']), null)
  assert.deepEqual(book.closedBy(['2', '2', '2']), ['2'])
})

test('a lease without jobs is forgotten', () => {
  for (let n = 0; n < 3; n++) book.leave('1', 'completed')
  assert.deepEqual(book.closedBy(['1']), [])
  assert.equal(book.jobsOf(['1']), null)
})
