import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { StreamEvent, StreamPage } from '../../db/queries/stream.ts'
import { readClientFrame } from '../../functions/stream/client-frame.ts'
import { formatCursor, parseCursor } from '../../functions/stream/cursor.ts'
import { deliver, isDue, PATIENCE_MS, tellEvents } from '../../functions/stream/delivery.ts'
import { createNudger } from '../../functions/stream/nudger.ts'
import { paceMs } from '../../functions/stream/pace.ts'
import { giveCredit, type Subscriber, subscribe, type Wish } from '../../functions/stream/subscriber.ts'

const MEMBER = { orgId: 'o', userId: 'u', sessionId: 's', keyId: null, secret: 'x' }
const INCARNATION = '00000000000000aa'
const START = { incarnation: INCARNATION, xid: '1', id: '0', position: 0 }
const HEAD = { incarnation: INCARNATION, xid: '99', id: '0', position: 0 }
const NOW = 1_000_000

const subscriber = (wish: Partial<Wish> = {}): Subscriber =>
  subscribe(
    { member: MEMBER, isAdmin: false, expiresAt: null },
    { place: null, filter: {}, topics: ['events'], logsAfter: null, ...wish },
    START,
    NOW,
  )

const event = (position: number, overrides: Partial<StreamEvent> = {}): StreamEvent => ({
  ...{ xid: '7', id: '1', position, job_id: `job-${position}`, name: 'n', type: 'test', priority: 'normal' },
  ...{ tags: [], state: 'ready', attempts: 0, reason: null, at: '2026-01-01T00:00:00.123456+00:00' },
  ...overrides,
})

const pageOf = (events: StreamEvent[], overrides: Partial<StreamPage> = {}): StreamPage => ({
  ...{ place: 0, begin: START, events, next: HEAD, head: HEAD, more: false, lost: null },
  behind: events.length,
  ...overrides,
})

const send = (to: Subscriber, page: StreamPage, now = NOW) =>
  deliver(to, page, tellEvents(page), now).map((frame) => JSON.parse(frame))

const many = (n: number): StreamEvent[] => Array.from({ length: n }, (_, i) => event(i + 1))

test('events go out in frames of a hundred, and cost a credit each', () => {
  const to = subscriber()
  const frames = send(to, pageOf(many(250)))
  assert.deepEqual(
    frames.map(({ events }) => events.length),
    [100, 100, 50],
  )
  assert.deepEqual([to.credit, to.place, to.pace], [6, HEAD, 'live'])
  assert.deepEqual(frames[0].events[1], {
    cursor: `${INCARNATION}-7-1-2`,
    type: 'job.ready',
    job: {
      ...{ id: 'job-2', name: 'n', type: 'test', status: 'ready', priority: 'normal', tags: [], attempts: 0 },
    },
    at: '2026-01-01T00:00:00.123Z',
    reason: null,
  })
})

test('who has no more credit stands after the last event that they got, and goes on from there', () => {
  const to = subscriber()
  send(to, pageOf(many(300)))
  assert.deepEqual(
    [to.credit, to.place, to.pace],
    [0, { incarnation: INCARNATION, xid: '7', id: '1', position: 256 }, 'slow'],
  )
  assert.equal(isDue(to, NOW), false)
  giveCredit(to, 100)
  assert.equal(isDue(to, NOW), true)
  const [frame] = send(to, pageOf(many(300).slice(256)))
  assert.deepEqual([frame.events.length, to.credit, to.place, to.pace], [44, 56, HEAD, 'live'])
})

test('what is not wanted costs nothing, and is passed', () => {
  const events = [
    event(1, { type: 'other' }),
    event(2, { state: 'failed' }),
    event(3, { tags: ['a'] }),
    event(4),
  ]
  const wanted = (filter: Wish['filter']) => {
    const to = subscriber({ filter })
    const got = send(to, pageOf(events)).flatMap((frame) => frame.events)
    assert.deepEqual(to.place, HEAD)
    return got.map(({ job }) => job.id)
  }
  assert.deepEqual(wanted({ type: 'other' }), ['job-1'])
  assert.deepEqual(wanted({ status: 'failed' }), ['job-2'])
  assert.deepEqual(wanted({ tag: 'a' }), ['job-3'])
  assert.deepEqual(wanted({ job_id: 'job-4' }), ['job-4'])
  assert.deepEqual(wanted({ tag: 'a', status: 'failed' }), [])
  const topicsOnly = subscriber({ topics: ['workers'] })
  assert.deepEqual(send(topicsOnly, pageOf(events)), [])
  const old = pageOf([], { behind: 5_001, lost: 'cursor_too_old' })
  assert.deepEqual(send(topicsOnly, old), [], 'nor is it missed')
})

test('who takes nothing for half a minute is told to look anew, if there was something', () => {
  const to = subscriber()
  send(to, pageOf(many(256)))
  assert.equal(isDue(to, NOW + PATIENCE_MS - 1), false)
  const later = NOW + PATIENCE_MS
  assert.equal(isDue(to, later), true)
  assert.deepEqual(send(to, pageOf([]), later), [], 'nothing was missed')
  const cursor = `${INCARNATION}-99-0-0`
  assert.deepEqual(send(to, pageOf(many(1)), later), [{ type: 'resync', cursor, reason: 'slow' }])
  assert.equal(isDue(to, later + 1), false, 'and may wait again')
})

test('who has just used up their credit is slow from then on, and may fall as far behind', () => {
  const to = subscriber()
  send(to, pageOf(many(256)))
  giveCredit(to, 100)
  assert.equal(send(to, pageOf(many(100), { behind: 5_001, more: true }))[0].type, 'events')
})

test('too much to look at, too old to go on from: the stream goes on at its head, and says so', () => {
  const reasonFor = (to: Subscriber, page: StreamPage) => {
    const [frame] = send(to, page)
    assert.deepEqual([to.place, to.pace], [HEAD, 'live'])
    return frame.reason
  }
  assert.equal(reasonFor(subscriber(), pageOf(many(2), { behind: 5_001 })), 'burst')
  const resuming = subscriber({ place: START })
  assert.equal(send(resuming, pageOf(many(2), { behind: 20_000 }))[0].type, 'events')
  assert.equal(reasonFor(subscriber({ place: START }), pageOf([], { behind: 20_001 })), 'cursor_too_old')
  const lost = (reason: StreamPage['lost']) => pageOf([], { lost: reason })
  assert.equal(reasonFor(subscriber({ place: START }), lost('cursor_too_old')), 'cursor_too_old')
  assert.equal(reasonFor({ ...subscriber(), pace: 'slow' }, pageOf([], { behind: 20_001 })), 'slow')
})

test('after a database restart every client resyncs, whatever its topics and however slow it is', () => {
  const page = pageOf([], { lost: 'database_restarted' })
  const starved = { ...subscriber(), credit: 0, starvedAt: NOW }
  for (const to of [
    subscriber(),
    subscriber({ place: START }),
    subscriber({ topics: ['workers'] }),
    starved,
  ]) {
    assert.deepEqual(send(to, page), [
      { type: 'resync', cursor: `${INCARNATION}-99-0-0`, reason: 'database_restarted' },
    ])
    assert.deepEqual(to.place, HEAD)
  }
})

test('a cursor is read as it was written, and nothing else is one', () => {
  const place = {
    incarnation: INCARNATION,
    xid: '18446744073709551615',
    id: '9223372036854775807',
    position: 7,
  }
  assert.deepEqual(parseCursor(formatCursor(place)), place)
  for (const text of [
    '',
    '1-2-3',
    '1-2-3-4',
    `${INCARNATION}-1-2`,
    `${INCARNATION}-1-2-3-4`,
    `${INCARNATION}-1-2-x`,
    `${INCARNATION}--1-2-3`,
    `${INCARNATION.toUpperCase()}-1-2-3`,
    `${INCARNATION}-18446744073709551616-0-0`,
    `${INCARNATION}-1-2-3000000000`,
  ]) {
    assert.equal(parseCursor(text), undefined, text)
  }
})

test('the pace slows down when it gets quiet', () => {
  assert.deepEqual(
    [0, 2_999, 3_000, 4_000, 5_000, 6_000, 7_000, 59_999, 60_000, 9e9].map(paceMs),
    [100, 100, 200, 400, 800, 1_600, 2_000, 2_000, 5_000, 5_000],
  )
})

test('clients may send credit and signs of life, and nothing else', () => {
  assert.deepEqual(readClientFrame('{"type":"credit","n":64}'), { type: 'credit', n: 64 })
  assert.deepEqual(readClientFrame('{"type":"pong"}'), { type: 'pong' })
  const bad = [
    '',
    'x',
    'null',
    '[]',
    '{"type":"credit"}',
    '{"type":"credit","n":0}',
    '{"type":"credit","n":1e9}',
  ]
  for (const text of [...bad, '{"type":"credit","n":1.5}', '{"type":"subscribe"}', `"${'x'.repeat(200)}"`]) {
    assert.equal(readClientFrame(text), undefined, text)
  }
  assert.equal(readClientFrame(new ArrayBuffer(2)), undefined)
})

test('one nudge is on its way at a time, and where nobody follows there is none for a while', async (t) => {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['Date'], now: NOW })
  const sent: string[] = []
  let answer = Promise.withResolvers<number>()
  const { nudge } = createNudger(
    (orgId) => {
      sent.push(orgId)
      return answer.promise
    },
    (error) => assert.fail(String(error)),
  )
  const hold = () => {}
  for (let n = 0; n < 5; n++) nudge('a', hold)
  nudge('b', hold)
  assert.deepEqual(sent, ['a', 'b'])
  answer.resolve(1)
  answer = Promise.withResolvers()
  await nextTurn()
  assert.deepEqual(sent, ['a', 'b', 'a'], 'what came meanwhile is in the next')
  answer.resolve(0)
  await nextTurn()
  nudge('a', hold)
  assert.equal(sent.length, 3, 'nobody is there')
  mock.timers.tick(3_000)
  nudge('a', hold)
  assert.equal(sent.length, 4)
})
