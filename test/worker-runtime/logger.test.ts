import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../../worker-runtime/logger.ts'

const capture = (pretty: boolean) => {
  const lines: string[] = []
  const logger = createLogger({ level: 'info', pretty, write: (line) => lines.push(line) })
  return { lines, logger }
}
const forged = { name: 'x\u001b[2J\n12:00:00 info  forged', error: new Error('broke'), count: 2 }

test('an event is one line of JSON', () => {
  const { lines, logger } = capture(false)
  logger.warn('job failed', forged)
  logger.debug('below the level')
  assert.equal(lines.length, 1)
  const { time, ...rest } = JSON.parse(lines[0] ?? '')
  assert.ok(Date.parse(time) > 0)
  assert.deepEqual(rest, { level: 'warn', message: 'job failed', ...forged, error: 'broke' })
})

test('on a terminal what a tenant named cannot forge a line or command the screen', () => {
  const { lines, logger } = capture(true)
  logger.info('job completed', forged)
  assert.equal(lines.join('').trimEnd().split('\n').length, 1)
  assert.ok(!lines.join('').includes('\u001b[2J'))
  assert.match(lines.join(''), /error=broke count=2/)
})
