import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replay, type Selection } from '../../functions/dashboard/views/dead-letters/replay.ts'

/** Answers one after the other, and counts the requests. */
const server = (...answers: ({ replayed: number; done: boolean } | Error)[]) => {
  const sent: Selection[] = []
  const send = async (selection: Selection) => {
    const answer = answers[sent.length]
    sent.push(selection)
    if (!answer) throw new Error('asked too often')
    if (answer instanceof Error) throw answer
    return answer
  }
  return { sent, send }
}

const GROUP = { fingerprint: 'f' }

test('a replay goes on until all are replayed', async () => {
  const { send, sent } = server({ replayed: 20, done: false }, { replayed: 5, done: true })
  assert.deepEqual(await replay(send, GROUP, 25), { replayed: 25, stopped: undefined })
  assert.deepEqual(sent, [GROUP, GROUP])
})

test('jobs that fail again meanwhile are not replayed for ever', async () => {
  const { send, sent } = server({ replayed: 20, done: false }, { replayed: 20, done: false })
  assert.equal((await replay(send, GROUP, 30)).replayed, 40)
  assert.equal(sent.length, 2)
})

test('a replay that moves nothing ends', async () => {
  const { send } = server({ replayed: 0, done: false })
  assert.deepEqual(await replay(send, GROUP, 10), { replayed: 0, stopped: undefined })
})

test('a queue that is full says how many were replayed before', async () => {
  const full = new Error('The queue is full')
  const { send } = server({ replayed: 20, done: false }, full)
  assert.deepEqual(await replay(send, GROUP, 100), { replayed: 20, stopped: full })
  await assert.rejects(replay(server(full).send, GROUP, 100), full)
})
