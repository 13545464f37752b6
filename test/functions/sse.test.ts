import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { translate } from '../../functions/stream/sse.ts'

/** The function's end of a socket to the object. */
const openSocket = () => {
  const sent: string[] = []
  const closed: number[] = []
  const socket = Object.assign(new EventTarget(), {
    accept: () => {},
    send: (text: string) => void sent.push(text),
    close: (code: number) => void closed.push(code),
  })
  const emit = (type: string, fields: object) => socket.dispatchEvent(Object.assign(new Event(type), fields))
  const receive = (frame: object) => emit('message', { data: JSON.stringify(frame) })
  return { socket: socket as unknown as WebSocket, sent, closed, emit, receive }
}

const summary = (n: number) => ({ type: 'summary', summary: { n } })
const events = (cursor: string) => ({ type: 'events', events: [{ type: 'job.ready', cursor }] })

test('of what a slow client has not taken, only the newest summary is kept, and every event', async () => {
  const { socket, sent, emit, receive } = openSocket()
  const body = translate(socket)
  for (let n = 0; n < 100; n++) receive(summary(n))
  for (const cursor of ['1-1-1', '1-1-2']) receive(events(cursor))
  await nextTurn()
  assert.deepEqual(sent, [], 'credit is given for what was taken')
  emit('close', { code: 4401, reason: 'over' })
  const text = await new Response(body).text()
  assert.deepEqual(
    text.split('\n').filter((line) => line.includes('"type":"summary"')),
    [0, 99].map((n) => `data: ${JSON.stringify(summary(n))}`),
    'the first was on its way',
  )
  assert.deepEqual(text.match(/^id: .*$/gm), ['id: 1-1-1', 'id: 1-1-2'])
  assert.ok(text.endsWith('event: close\ndata: {"code":4401,"reason":"over"}\n\n'))
})

test('credit is given back as events are taken, and the socket is closed when the client goes', async () => {
  const { socket, sent, closed, receive } = openSocket()
  const reader = translate(socket).getReader()
  receive(events('1-1-1'))
  await reader.read()
  await nextTurn()
  assert.deepEqual(sent, ['{"type":"credit","n":1}'])
  await reader.cancel()
  receive(events('1-1-2'))
  await nextTurn()
  assert.ok(closed.includes(1000))
})
