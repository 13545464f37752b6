import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReadJob } from '../../db/queries/job-facts.ts'
import { createReadGroups } from '../../functions/jobs/read-groups.ts'

const found = (id: string) => ({ job: { id } }) as ReadJob

/** A database that answers when it is told to. */
const createStage = (patienceMs?: number) => {
  const groups = createReadGroups(patienceMs)
  const sent: { ids: readonly string[]; answer: PromiseWithResolvers<ReadJob[]> }[] = []
  const read = (id: string, caller = 'ada') =>
    groups.read(
      caller,
      id,
      (ids) => {
        const answer = Promise.withResolvers<ReadJob[]>()
        sent.push({ ids, answer })
        return answer.promise
      },
      (work) => void work,
    )
  return { read, sent, answer: (n: number) => sent[n]?.answer.resolve(sent[n].ids.map(found)) }
}

/** Lets all that can go on go on. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a read is sent at once, and those that come meanwhile go together in the next', async () => {
  const { read, sent, answer } = createStage()
  const reads = ['1', '2', '3', '4'].map((id) => read(id))
  assert.deepEqual(
    sent.map(({ ids }) => ids),
    [['1']],
  )
  answer(0)
  await turn()
  assert.deepEqual(sent[1]?.ids, ['2', '3', '4'])
  answer(1)
  assert.deepEqual(
    (await Promise.all(reads)).map((one) => one?.job.id),
    ['1', '2', '3', '4'],
  )
  // Nothing is on its way any more, so the next is sent at once.
  const last = read('5')
  assert.equal(sent.length, 3)
  answer(2)
  assert.equal((await last)?.job.id, '5')
})

test('nobody reads for another caller', async () => {
  const { read, sent } = createStage()
  void read('1', 'ada')
  void read('2', 'bob')
  assert.deepEqual(
    sent.map(({ ids }) => ids),
    [['1'], ['2']],
  )
})

test('a job that is not found is missing for those that asked for it, and for nobody else', async () => {
  const { read, sent, answer } = createStage()
  const reads = [read('1'), read('none'), read('3')]
  answer(0)
  await turn()
  sent[1]?.answer.resolve([found('3')])
  assert.deepEqual(
    (await Promise.all(reads)).map((one) => one?.job.id),
    ['1', undefined, '3'],
  )
})

test('an error is told to the whole group, and to no other', async () => {
  const { read, sent, answer } = createStage()
  const settled = Promise.allSettled([read('1'), read('2'), read('3')])
  sent[0]?.answer.reject(new Error('gone'))
  await turn()
  answer(1)
  const [first, ...others] = await settled
  assert.equal(first?.status, 'rejected')
  assert.deepEqual(
    others.map(({ status }) => status),
    ['fulfilled', 'fulfilled'],
  )
})

test('whoever waits for a read that never ends reads for itself', async () => {
  const { read, sent, answer } = createStage(5)
  void read('1')
  const second = read('2')
  while (sent.length < 2) await turn()
  assert.deepEqual(sent[1]?.ids, ['2'])
  answer(1)
  assert.equal((await second)?.job.id, '2')
  // The lost group holds up nobody who comes later.
  void read('3')
  assert.deepEqual(sent[2]?.ids, ['3'])
})
