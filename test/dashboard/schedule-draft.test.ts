import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schedule } from '../../functions/dashboard/api/answers.ts'
import { draftOf, emptyDraft, requestOf } from '../../functions/dashboard/views/schedules/draft.ts'

const job: Schedule['job'] = {
  name: 'nightly-report',
  type: 'http',
  payload: { url: 'https://example.com/' },
  priority: 'high',
  resources: { cpu_units: 2, memory_mb: 512 },
  retry: { max_attempts: 7, initial_delay_seconds: 60, backoff_multiplier: 3 },
  tags: ['billing', 'night'],
  timeout_seconds: 300,
  callback_url: 'https://example.com/told',
  fairness_key: 'customer-42',
  deadline_seconds: null,
}

const schedule = { name: 'nightly', cron: '30 2 * * *', timezone: 'UTC', catch_up: 'all', job } as Schedule

test('a schedule that is saved without a change stays as it is, also what the form does not show', () => {
  const { deadline_seconds: _, ...sent } = job
  const { name, cron, timezone, catch_up } = schedule
  assert.deepEqual(requestOf(draftOf(schedule)), { name, cron, timezone, catch_up, job: sent })
})

test('what is left empty is not sent', () => {
  const { job } = requestOf({ ...emptyDraft('UTC'), name: ' report ', tags: ' a, ,b ', maxAttempts: '' })
  assert.deepEqual(Object.keys(job).toSorted(), ['payload', 'priority', 'retry', 'tags', 'type'])
  assert.deepEqual(job.tags, ['a', 'b'])
  assert.deepEqual(job.retry, {})
})
