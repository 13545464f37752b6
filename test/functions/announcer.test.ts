import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createAnnouncer } from '../../functions/jobs/announcer.ts'

const start = () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const sent: string[][] = []
  const { announce } = createAnnouncer(
    async (types) => sent.push(types),
    (error) => assert.fail(String(error)),
  )
  const pass = async (ms: number): Promise<void> => {
    mock.timers.tick(ms)
    await nextTurn()
  }
  return { announce, sent, pass }
}

test('the first job is announced at once, those that follow it closely together a moment later', async (t) => {
  t.after(() => mock.timers.reset())
  const { announce, sent, pass } = start()
  const first = announce(['a'])
  assert.deepEqual(sent, [['a']])
  for (let n = 0; n < 10; n++) await announce([n % 2 ? 'a' : 'b'])
  assert.deepEqual(sent, [['a']])
  await pass(5)
  assert.deepEqual(sent, [['a'], ['b', 'a']])
  await pass(5)
  await first
  announce(['c'])
  assert.deepEqual(sent.at(-1), ['c'], 'after a quiet moment again at once')
})

test('who has announced for others for five seconds leaves it to the next', async (t) => {
  t.after(() => mock.timers.reset())
  const { announce, sent, pass } = start()
  let over = false
  const first = announce(['a']).then(() => {
    over = true
  })
  while (!over) {
    announce(['a'])
    await pass(5)
  }
  await first
  const before = sent.length
  announce(['b'])
  assert.ok(before > 1_000)
  assert.deepEqual(sent.at(-1), ['b'])
})
