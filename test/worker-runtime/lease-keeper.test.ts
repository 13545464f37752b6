import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../db/query.ts'
import { createLeaseKeeper, LEASE_SECONDS } from '../../worker-runtime/lease-keeper.ts'
import { waitFor } from '../support/wait-for.ts'

const held = [
  { job_id: 'a', token: 'old', claimedAtMs: 0 },
  { job_id: 'b', token: 'new', claimedAtMs: 20_000 },
]

/** One renewal at `nowMs`; the tokens that it gave up. */
const renewOnce = async (run: Run, nowMs: number): Promise<string[]> => {
  const lost: string[] = []
  let asked = 0
  const counted: Run = (query) => {
    asked++
    return run(query)
  }
  const onLost = (token: string) => lost.push(token)
  const keeper = createLeaseKeeper({
    run: counted,
    held: () => held,
    onLost,
    onError: () => {},
    now: () => nowMs,
  })
  keeper.start()
  await waitFor('a renewal', () => asked > 0)
  await keeper.stop()
  return lost
}

test('a lease that the database does not know any more is lost', async () => {
  const run: Run = async () => [{ token: 'new' }] as never
  assert.deepEqual(await renewOnce(run, 25_000), ['old'])
})

test('while the database is away a lease is kept as long as it lives, and no longer', async () => {
  const run: Run = () => Promise.reject(new Error('away'))
  assert.deepEqual(await renewOnce(run, LEASE_SECONDS * 1000 - 1), [])
  assert.deepEqual(await renewOnce(run, LEASE_SECONDS * 1000), ['old'])
  assert.deepEqual(await renewOnce(run, LEASE_SECONDS * 1000 + 20_000), ['old', 'new'])
})
