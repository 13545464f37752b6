import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findGraphFaults } from '../../functions/jobs/graph-faults.ts'

/** `{ a: 'bc' }`: a depends on b and c. */
const batch = (edges: Record<string, string>) =>
  Object.entries(edges).map(([ref, parents]) => ({
    ref,
    depends_on: [...parents].map((parent) => `ref:${parent}`),
  }))

test('a graph without circles has no faults, however it is sorted', () => {
  assert.deepEqual(findGraphFaults(batch({ a: 'bcd', b: 'd', c: 'd', d: '' })), [])
  assert.deepEqual(findGraphFaults(batch({ d: '', c: 'd', b: 'd', a: 'bcd' })), [])
  assert.deepEqual(findGraphFaults([{ depends_on: [crypto.randomUUID()] }, { depends_on: [] }]), [])
})

test('a circle is told by its edges alone, wherever the search comes from', () => {
  const faults = findGraphFaults(batch({ x: 'y', y: 'zb', z: '', b: 'zc', c: 'd', d: 'b' }))
  const edges = [
    { job: 3, entry: 1 },
    { job: 4, entry: 0 },
    { job: 5, entry: 0 },
  ]
  assert.deepEqual(faults, [{ kind: 'cycle', edges }])
  assert.deepEqual(findGraphFaults(batch({ a: '', b: 'ab' })), [
    { kind: 'cycle', edges: [{ job: 1, entry: 1 }] },
  ])
})

test('edges that close no circle in a random order never do', () => {
  const count = 200
  const order = Array.from({ length: count }, (_, n) => n)
  for (let n = count - 1; n > 0; n--) {
    const other = (n * 7919) % (n + 1)
    ;[order[n], order[other]] = [order[other] ?? 0, order[n] ?? 0]
  }
  const jobs = order.map((n) => ({
    ref: `${n}`,
    depends_on: [n - 1, n - 3, Math.floor(n / 2)].filter((p) => p >= 0 && p < n).map((p) => `ref:${p}`),
  }))
  assert.deepEqual(findGraphFaults(jobs), [])
  const closed = jobs.map((job) => (job.ref === '0' ? { ...job, depends_on: [`ref:${count - 1}`] } : job))
  assert.equal(findGraphFaults(closed)[0]?.kind, 'cycle')
})
