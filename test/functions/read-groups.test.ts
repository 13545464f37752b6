import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReadJob } from '../../db/queries/job-facts.ts'
import { createReadGroups } from '../../functions/jobs/read-groups.ts'

const found = (id: string) => ({ job: { id } }) as ReadJob

/** A database that answers when it is told to. */
const createStage = (patience?: { turnMs: number; answerMs: number }) => {
  const groups = createReadGroups(patience)
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

/** Lets pending callbacks run. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a read is sent at once, and reads that arrive meanwhile share the next call', async () => {
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
  // Nothing is in flight any more, so the next is sent at once.
  const last = read('5')
  assert.equal(sent.length, 3)
  answer(2)
  assert.equal((await last)?.job.id, '5')
})

test('different callers never share a call', async () => {
  const { read, sent } = createStage()
  void read('1', 'ada')
  void read('2', 'bob')
  assert.deepEqual(
    sent.map(({ ids }) => ids),
    [['1'], ['2']],
  )
})

test('a missing job is undefined only for the reader that asked for it', async () => {
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

test('an error fails its own group and no other', async () => {
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

test('a read whose turn never comes takes it, and with it all that wait', async () => {
  const { read, sent, answer } = createStage({ turnMs: 5, answerMs: 60_000 })
  void read('1')
  const waiting = [read('2'), read('3')]
  while (sent.length < 2) await turn()
  assert.deepEqual(sent[1]?.ids, ['2', '3'])
  answer(1)
  assert.deepEqual(
    (await Promise.all(waiting)).map((one) => one?.job.id),
    ['2', '3'],
  )
})

test('a read whose group never returns is sent again on its own', async () => {
  const { read, sent, answer } = createStage({ turnMs: 5, answerMs: 5 })
  const reads = [read('1'), read('2'), read('3')]
  answer(0)
  while (sent.length < 3) await turn()
  assert.deepEqual(
    sent.map(({ ids }) => ids),
    [['1'], ['2', '3'], ['3']],
  )
  answer(2)
  assert.equal((await reads[2])?.job.id, '3')
})

test('a job that several ask for at the same time is read once', async () => {
  const { read, sent, answer } = createStage()
  const reads = ['1', '2', '2'].map((id) => read(id))
  answer(0)
  await turn()
  assert.deepEqual(sent[1]?.ids, ['2'])
  answer(1)
  assert.deepEqual(
    (await Promise.all(reads)).map((one) => one?.job.id),
    ['1', '2', '2'],
  )
})
