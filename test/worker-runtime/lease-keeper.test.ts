import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../db/query.ts'
import { createLeaseBook, LEASE_SECONDS } from '../../worker-runtime/lease-book.ts'
import { createLeaseKeeper, type Loss } from '../../worker-runtime/lease-keeper.ts'
import { waitFor } from '../support/wait-for.ts'

const held = [
  { job_id: 'a', token: '1' },
  { job_id: 'b', token: '2' },
]
const bookOfHeld = () => {
  const leases = createLeaseBook()
  leases.open('1', 1, 0)
  leases.open('2', 1, 20_000)
  return leases
}

/** A keeper at `nowMs`, after its first renewal; the jobs that it gave up, with why. */
const renewOnce = async (
  run: Run,
  nowMs: number,
  check?: 'cancelled',
  leases = bookOfHeld(),
): Promise<string[]> => {
  const lost: string[] = []
  let asked = 0
  const counted: Run = (query) => {
    asked++
    return run(query)
  }
  const keeper = createLeaseKeeper({
    run: counted,
    held: () => held,
    leases,
    onLost: ({ job_id }, why: Loss) => lost.push(`${job_id} ${why}`),
    onError: () => {},
    now: () => nowMs,
  })
  if (check) keeper.checkCancelled()
  keeper.start()
  await waitFor('a renewal', () => asked > 0)
  await keeper.stop()
  return lost
}

test('a lease that the database does not know any more is lost', async () => {
  const run: Run = async () => [{ token: '2', job_ids: ['b'] }] as never
  assert.deepEqual(await renewOnce(run, 25_000), ['a lease_lost'])
})

test('a job that has left its lease is lost, also if the lease lives', async () => {
  const run: Run = async () =>
    [
      { token: '1', job_ids: ['b'] },
      { token: '2', job_ids: ['b'] },
    ] as never
  assert.deepEqual(await renewOnce(run, 25_000), ['a lease_lost'])
})

test('what is gone after word of a cancellation was cancelled', async () => {
  const run: Run = async () => [{ token: '1', job_ids: ['a'] }] as never
  assert.deepEqual(await renewOnce(run, 25_000, 'cancelled'), ['b cancelled'])
})

test('while the database is away a lease is kept as long as it lives, and no longer', async () => {
  const run: Run = () => Promise.reject(new Error('away'))
  assert.deepEqual(await renewOnce(run, LEASE_SECONDS * 1000 - 1), [])
  assert.deepEqual(await renewOnce(run, LEASE_SECONDS * 1000), ['a lease_lost'])
  assert.deepEqual(await renewOnce(run, LEASE_SECONDS * 1000 + 20_000), ['a lease_lost', 'b lease_lost'])
})

test('a renewal extends only the leases it renewed, from the time it was sent', async () => {
  const leases = bookOfHeld()
  const renewsTheFirst: Run = async () => [{ token: '1', job_ids: ['a'] }] as never
  assert.deepEqual(await renewOnce(renewsTheFirst, 25_000, undefined, leases), ['b lease_lost'])
  const away: Run = () => Promise.reject(new Error('away'))
  assert.deepEqual(await renewOnce(away, 54_999, undefined, leases), ['b lease_lost'])
  assert.deepEqual(await renewOnce(away, 55_000, undefined, leases), ['a lease_lost', 'b lease_lost'])
})

test('without leases nobody is asked', async () => {
  let asked = false
  const keeper = createLeaseKeeper({
    run: async () => {
      asked = true
      return []
    },
    held: () => [],
    leases: createLeaseBook(),
    onLost: () => {},
    onError: () => {},
  })
  keeper.start()
  await new Promise(setImmediate)
  await keeper.stop()
  assert.equal(asked, false)
})
