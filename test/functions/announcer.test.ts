import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createAnnouncer } from '../../functions/jobs/announcer.ts'

const start = () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const sent: string[][] = []
  const announcer = createAnnouncer(
    async (types) => sent.push(types),
    (error) => assert.fail(String(error)),
  )
  const pass = async (ms: number): Promise<void> => {
    mock.timers.tick(ms)
    await nextTurn()
  }
  return { ...announcer, sent, pass }
}

test('types are announced together after a moment, those that a commit has announced are not', async (t) => {
  t.after(() => mock.timers.reset())
  const { announce, mark, forget, sent, pass } = start()
  const first = announce(['a', 'b'])
  const sentAt = mark()
  for (let n = 0; n < 10; n++) await announce([n % 2 ? 'c' : 'b'])
  // Jobs of type b were committed after the submission was sent, so its notification may have come too early for them.
  forget(['a', 'b', 'd'], sentAt)
  assert.deepEqual(sent, [])
  await pass(8)
  await first
  assert.deepEqual(sent, [['b', 'c']])
  const second = announce(['d'])
  await pass(8)
  await second
  assert.deepEqual(sent.at(-1), ['d'])
})

test('nothing is sent if commits have announced all types', async (t) => {
  t.after(() => mock.timers.reset())
  const { announce, mark, forget, sent, pass } = start()
  const first = announce(['a'])
  forget(['a'], mark())
  await pass(8)
  await first
  assert.deepEqual(sent, [])
})

test('while commits keep announcing the remembered types, no separate notification is sent', async (t) => {
  t.after(() => mock.timers.reset())
  const { announce, mark, forget, sent, pass } = start()
  const first = announce(['a'])
  await pass(4)
  forget(['a'], mark())
  await announce(['b'])
  await pass(4)
  assert.deepEqual(sent, [])
  await pass(8)
  await first
  assert.deepEqual(sent, [['b']])
})

test('if whoever was to announce is gone, the next one does', async (t) => {
  t.after(() => mock.timers.reset())
  const { announce, sent, pass } = start()
  // The runtime has ended the request, and with it the timer.
  const lost = mock.method(globalThis, 'setTimeout', () => 0)
  void announce(['a'])
  lost.mock.restore()
  await announce(['b'])
  await pass(1_000)
  const next = announce(['c'])
  await pass(8)
  await next
  assert.deepEqual(sent, [['a', 'b', 'c']])
})
