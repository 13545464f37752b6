import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import type { Run } from '../../db/query.ts'
import type { Reader } from '../../functions/stream/reader.ts'
import { type Socket, subscribe, type TopicName } from '../../functions/stream/subscriber.ts'
import { createTopicReader } from '../../functions/stream/topic-reader.ts'
import { createTopics } from '../../functions/stream/topics.ts'

const START_MS = Date.parse('2026-01-01T00:00:00Z')

before(() => mock.timers.enable({ apis: ['Date'], now: START_MS }))
after(() => mock.timers.reset())

/** Somebody who follows a topic, and a database that answers by the name of a statement. */
const follow = (topic: TopicName, answers: Record<string, () => unknown[]>) => {
  const frames: { type: string; lines?: unknown[] }[] = []
  const errors: unknown[] = []
  const member = { orgId: 'o', userId: 'u', sessionId: 's', keyId: null, secret: 'x' }
  const place = { incarnation: '00000000000000aa', xid: '1', id: '0', position: 0 }
  const wish = { place: null, filter: { job_id: 'j' }, topics: [topic], logsAfter: '0' }
  const socket: Socket = {
    subscriber: subscribe({ member, isAdmin: false, expiresAt: null }, wish, place, Date.now()),
    send: (text) => frames.push(JSON.parse(text)),
    close: () => {},
    save: () => {},
  }
  const run = (async ({ name }) => answers[name]?.() ?? []) as Run
  const reader: Reader = {
    read: () => assert.fail('no events are read here'),
    runAs: () => run,
    runAsAdmin: () => run,
  }
  const topics = createTopicReader(
    createTopics(async () => ({})),
    (error) => errors.push(error),
  )
  return {
    ...{ frames, errors },
    read: () => topics.read([socket], reader, Date.now()),
    dueInMs: () => topics.nextAt([socket], Date.now()) - Date.now(),
  }
}

const worker = (overrides: object = {}) => ({
  ...{ worker_id: 'pod-1', hostname: 'h', status: 'online', types: ['test'], slots: 10, cpu_units: 1 },
  ...{
    memory_mb: 512,
    running: 0,
    jobs_processed: '0',
    started_at: new Date(START_MS),
    last_seen: new Date(),
  },
  ...overrides,
})

test('that a worker was seen again is told every five seconds, anything else at once', async () => {
  let running = 0
  const client = follow('workers', { 'list-workers': () => [worker({ running })] })
  await client.read()
  mock.timers.tick(2_000)
  await client.read()
  assert.equal(client.frames.length, 1)
  running = 1
  mock.timers.tick(2_000)
  await client.read()
  assert.equal(client.frames.length, 2)
  mock.timers.tick(2_000)
  await client.read()
  assert.equal(client.frames.length, 3)
})

test('a log that has more than fits is read on at once', async () => {
  const line = { attempt: 1, at: '2026-01-01T00:00:00Z', level: 'info', message: 'm' }
  let left = 450
  const followJob = () => {
    const lines = Array.from({ length: Math.min(200, left) }, () => line)
    left -= lines.length
    return [{ progress: null, note: null, newest: String(1_000 - left), lines }]
  }
  const client = follow('logs', { 'follow-job': followJob })
  await client.read()
  assert.ok(client.dueInMs() <= 0)
  await client.read()
  await client.read()
  assert.equal(client.frames.flatMap(({ lines }) => lines ?? []).length, 450)
  assert.ok(client.dueInMs() > 0, 'and then it is waited for')
})

test('a topic that cannot be read is tried again at its pace', async () => {
  const broken = () => {
    throw new Error('out of order')
  }
  const client = follow('workers', { 'list-workers': broken })
  await client.read()
  assert.equal(client.errors.length, 1)
  assert.ok(client.dueInMs() >= 2_000)
})
