import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  append,
  atLeast,
  EMPTY_LOG,
  restartsOf,
  startsAttempt,
  toText,
} from '../../functions/dashboard/views/job/log-lines.ts'
import { outlookOf, verdictOf } from '../../functions/dashboard/views/job/prediction-words.ts'

const PREDICTION = { p50_ms: 1_000, p90_ms: 2_000, source: 'lstm' as const, model_version: 3 }

test('how far off a prediction was is said in words', () => {
  const verdict = (ms: number): string => verdictOf(PREDICTION, ms)
  assert.equal(verdict(1_300), 'Took 1.3 × the prediction, within p90.')
  assert.equal(verdict(1_050), 'Took as long as predicted, within p90.')
  assert.equal(verdict(400), 'Took 0.4 × the prediction, within p90.')
  assert.equal(verdict(50), 'Took 0.05 × the prediction, within p90.')
  assert.equal(verdict(2), 'Took less than a hundredth of the prediction, within p90.')
  assert.equal(verdict(25_000), 'Took 25 × the prediction, longer than p90, as one in ten does.')
})

test('what an attempt that runs will still take goes by how long it has run', () => {
  assert.match(outlookOf(PREDICTION, 400), /^Half .* 600 ms\.$/)
  assert.match(outlookOf(PREDICTION, 1_500), /Nine of ten .* 500 ms\.$/)
  assert.equal(outlookOf(PREDICTION, 2_500), 'Longer than nine of ten such attempts take.')
})

const line = (message: string, level: 'debug' | 'info' | 'warn' | 'error' = 'info') => ({
  at: '2026-01-01T00:00:00.000Z',
  level,
  message,
  attempt: 1,
})
const ATTEMPT = {
  ...{ outcome: 'completed' as const, error: null, worker_id: 'w', runtime_ms: 1 },
  finished_at: '2026-01-01T00:00:09.000Z',
}
const messages = (lines: readonly { message: string }[]): string =>
  lines.map(({ message }) => message).join('')

test('no line comes twice or is missed where the stream goes on from the pages', () => {
  let log = append(EMPTY_LOG, { lines: [line('a'), line('b')], next: 'b' })
  log = append(log, { lines: [line('c')], next: null })
  assert.deepEqual([messages(log.lines), log.cursor], ['abc', 'b'])
  // The stream starts after the cursor: it sends c again, and what was written meanwhile.
  log = append(log, { lines: [line('c'), line('d')], next: 'd' })
  log = append(log, { lines: [line('e')], next: 'e' })
  assert.deepEqual([messages(log.lines), log.cursor], ['abcde', 'e'])
})

test('a log of a single page is followed from its beginning', () => {
  const log = append(EMPTY_LOG, { lines: [line('a')], next: null })
  assert.equal(log.cursor, EMPTY_LOG.cursor)
  assert.equal(messages(append(log, { lines: [line('a'), line('b')], next: 'b' }).lines), 'ab')
})

test('attempts are told apart, also when they count from 1 again', () => {
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`
  const [first, second] = [
    { ...line('a'), at: at(1) },
    { ...line('b'), at: at(4) },
  ]
  assert.ok(startsAttempt(first, undefined, []))
  assert.ok(startsAttempt({ ...second, attempt: 2 }, first, []))
  const attempt = (number: number, second: number) => ({
    ...ATTEMPT,
    attempt: number,
    started_at: at(second),
  })
  assert.ok(startsAttempt(second, first, restartsOf([attempt(1, 0), attempt(1, 3)])))
  // By the clock of the worker the first line may be older than its attempt.
  assert.ok(!startsAttempt(second, first, restartsOf([attempt(1, 2), attempt(2, 3)])))
})

test('lines below a level can be left out', () => {
  const lines = [line('d', 'debug'), line('i'), line('w', 'warn'), line('e', 'error')]
  assert.equal(messages(atLeast(lines, 'debug')), 'diwe')
  assert.equal(messages(atLeast(lines, 'warn')), 'we')
})

test('a log is copied with its times, levels and attempts', () => {
  assert.equal(
    toText([line('one'), line('two', 'error')]).split('\n')[1],
    '2026-01-01T00:00:00.000Z error [1] two',
  )
})
