import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Query, Run } from '../../db/query.ts'
import { createProgressWriter } from '../../worker-runtime/progress-writer.ts'

const LEASE = { job_id: 'a', token: '1' }

/** A writer on a database that notes what it is sent, and fails as often as told. */
const setUp = (failures = 0) => {
  const sent: Record<string, unknown>[][] = []
  const run: Run = async <Row>(query: Query<Row>): Promise<Row[]> => {
    sent.push(JSON.parse(String(query.values[0])))
    if (failures-- > 0) throw new Error('away')
    return []
  }
  const errors: Error[] = []
  return { sent, errors, writer: createProgressWriter({ run, onError: (error) => errors.push(error) }) }
}

test('of many reports the newest of each job is stored, by one statement', async () => {
  const { sent, writer } = setUp()
  writer.report(LEASE, 0.1, 'first')
  writer.report({ job_id: 'b', token: '2' }, 0.3)
  writer.report(LEASE, 0.2, 'second')
  await writer.flush()
  assert.deepEqual(
    sent.map((batch) => batch.map(({ job_id, progress, note }) => [job_id, progress, note])),
    [
      [
        ['a', 0.2, 'second'],
        ['b', 0.3, null],
      ],
    ],
  )
})

test('reports go out by themselves after a moment', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { sent, writer } = setUp()
  writer.report(LEASE, 0.1)
  t.mock.timers.tick(250)
  await new Promise(setImmediate)
  assert.equal(sent.length, 1)
})

test('a checkpoint is stored when its promise resolves, with the progress before it', async () => {
  const { sent, writer } = setUp()
  writer.report(LEASE, 0.5, 'half')
  await writer.checkpoint(LEASE, { page: 3 })
  assert.deepEqual(sent, [
    [{ ...LEASE, progress: 0.5, note: 'half', checkpoint: { page: 3 }, has_checkpoint: true }],
  ])
})

test('a checkpoint that cannot be stored is said so to the handler', async () => {
  const { writer } = setUp(1)
  await assert.rejects(writer.checkpoint(LEASE, 1), /away/)
  await writer.checkpoint(LEASE, 2)
})

test('what a former attempt of the job reported is not mixed with the next', async () => {
  const { sent, writer } = setUp()
  writer.report(LEASE, 0.9, 'old')
  await Promise.all([writer.checkpoint({ job_id: 'a', token: '2' }, null)])
  assert.deepEqual(sent.at(-1), [
    { job_id: 'a', token: '2', progress: null, note: null, checkpoint: null, has_checkpoint: true },
  ])
})

test('any number is a fraction, any note is short and storable', async () => {
  const { sent, writer } = setUp()
  for (const [n, fraction] of [7, -1, Number.NaN, 0.25].entries()) {
    writer.report({ job_id: String(n), token: '1' }, fraction, `\0${'x'.repeat(500)}`)
  }
  await writer.flush()
  assert.deepEqual(
    sent[0]?.map(({ progress }) => progress),
    [1, 0, 0, 0.25],
  )
  assert.ok(sent[0]?.every(({ note }) => String(note).length === 200 && !String(note).includes('\0')))
})
