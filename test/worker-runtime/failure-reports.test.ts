import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFailureReports } from '../../worker-runtime/failure-reports.ts'
import { createLogger } from '../../worker-runtime/logger.ts'

const setUp = () => {
  const lines: Record<string, unknown>[] = []
  let nowMs = 0
  const logger = createLogger({
    level: 'debug',
    pretty: false,
    write: (line) => {
      const { time: _, level: __, ...rest } = JSON.parse(line)
      lines.push(rest)
    },
  })
  const failed = createFailureReports({ logger, now: () => nowMs })
  return { lines, failed, pass: (ms: number) => (nowMs += ms) }
}

test('a part that goes on failing in the same way says so every ten seconds, and how often it was', () => {
  const { lines, failed, pass } = setUp()
  for (let n = 0; n < 5; n++) failed('heartbeat')(new Error('refused'))
  assert.deepEqual(lines, [{ message: 'heartbeat failed', error: 'refused' }])
  pass(10_000)
  failed('heartbeat')(new Error('refused'))
  assert.deepEqual(lines.slice(1), [
    { message: 'heartbeat failed', error: 'refused', failures_since_last_line: 4 },
  ])
})

test('another reason, and another part, are said at once', () => {
  const { lines, failed } = setUp()
  failed('heartbeat')(new Error('refused'))
  failed('heartbeat')(new Error('too many connections'))
  failed('exchange')(new Error('refused'))
  assert.deepEqual(
    lines.map(({ message, error }) => [message, error]),
    [
      ['heartbeat failed', 'refused'],
      ['heartbeat failed', 'too many connections'],
      ['exchange failed', 'refused'],
    ],
  )
})
