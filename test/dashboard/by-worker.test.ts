import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byWorker } from '../../functions/dashboard/views/workers/by-worker.ts'

const job = (id: string, worker_id: string | null, started_at: string | null) => ({
  id,
  worker_id,
  started_at,
})

test('jobs are grouped by their worker, those that have run longest first', () => {
  const groups = byWorker([
    job('new', 'a', '2026-11-17T10:00:02Z'),
    job('other', 'b', '2026-11-17T10:00:01Z'),
    job('nobody', null, '2026-11-17T10:00:00Z'),
    job('old', 'a', '2026-11-17T10:00:00Z'),
    job('starting', 'a', null),
  ])
  assert.deepEqual([...groups.keys()].toSorted(), ['a', 'b'])
  assert.deepEqual(
    groups.get('a')?.map(({ id }) => id),
    ['old', 'new', 'starting'],
  )
})
