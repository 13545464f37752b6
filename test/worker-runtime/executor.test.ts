import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { ClaimedJob } from '../../db/queries/leases.ts'
import { startExecution } from '../../worker-runtime/executor.ts'
import { defineJob, JobError, type JobHandler } from '../../worker-runtime/handler-api.ts'
import { ExecutionAborted, endAttempt } from '../../worker-runtime/outcome.ts'

const job: ClaimedJob = {
  job_id: 'j',
  token: 't',
  org_id: 'o',
  type: 'test',
  name: 'n',
  payload: {},
  attempt: 1,
  timeout_seconds: null,
  max_attempts: 3,
  initial_delay_seconds: 10,
  backoff_multiplier: 2,
}
const silent = () => {}
const tools = {
  log: { debug: silent, info: silent, warn: silent, error: silent },
  fetch: () => Promise.reject(),
}
const execute = (handler: JobHandler, overrides: Partial<ClaimedJob> = {}) =>
  startExecution({ ...job, ...overrides }, handler, tools)
const handler = (run: JobHandler['run'], schema: z.ZodType = z.object({})) =>
  defineJob({ type: 'test', schema, run })

test('what a handler returns is the outcome; nothing is null', async () => {
  assert.deepEqual(await execute(handler(async () => ({ a: 1 }))).outcome, { kind: 'done', result: { a: 1 } })
  assert.deepEqual(await execute(handler(async () => undefined)).outcome, { kind: 'done', result: null })
})

const faults: [string, JobHandler, string, boolean][] = [
  ['an error', handler(() => Promise.reject(new Error('x'))), 'handler_error', false],
  [
    'a permanent error',
    handler(() => Promise.reject(new JobError('gone', 'x', { permanent: true }))),
    'gone',
    true,
  ],
  ['a text', handler(() => Promise.reject('x')), 'handler_error', false],
  ['nothing at all', handler(() => Promise.reject()), 'handler_error', false],
  ['what has no text form', handler(() => Promise.reject(Object.create(null))), 'handler_error', false],
  [
    'an error whose message is no text',
    handler(() => Promise.reject(Object.assign(new Error(), { message: 7 }))),
    'handler_error',
    false,
  ],
  [
    'a throw that is not a promise',
    handler(() => {
      throw new Error('x')
    }),
    'handler_error',
    false,
  ],
  [
    'a payload that does not fit',
    handler(async () => 1, z.object({ a: z.string() })),
    'invalid_payload',
    true,
  ],
  [
    'a schema that throws',
    handler(
      async () => 1,
      z.object({}).transform(() => {
        throw new Error('x')
      }),
    ),
    'handler_error',
    false,
  ],
  [
    'an async schema that refuses',
    handler(
      async () => 1,
      z.object({}).refine(async () => false),
    ),
    'invalid_payload',
    true,
  ],
  [
    'a cyclic result',
    handler(async () => {
      const a: { a?: unknown } = {}
      a.a = a
      return a
    }),
    'unstorable_result',
    true,
  ],
  ['a result that is too large', handler(async () => 'x'.repeat(3_000_000)), 'result_too_large', true],
  ['a function as result', handler(async () => silent), 'unstorable_result', true],
]

for (const [what, faulty, code, permanent] of faults) {
  test(`${what} is an outcome like any other`, async () => {
    const outcome = await execute(faulty).outcome
    assert.equal(outcome.kind, 'failed')
    assert.deepEqual(outcome.kind === 'failed' && [outcome.error.code, outcome.permanent], [code, permanent])
  })
}

const untilAborted = handler(
  (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
)

test('an abort decides the outcome, whatever the handler throws because of it', async () => {
  for (const [why, kind] of [
    ['timeout', 'failed'],
    ['lease_lost', 'lost'],
    ['shutdown', 'released'],
  ] as const) {
    const execution = execute(untilAborted)
    execution.abort(new ExecutionAborted(why, 'x'))
    assert.equal((await execution.outcome).kind, kind)
  }
})

test('a handler that finishes in spite of a shutdown has finished', async () => {
  const started = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<string>()
  const execution = execute(
    handler(() => {
      started.resolve()
      return finish.promise
    }),
  )
  await started.promise
  execution.abort(new ExecutionAborted('shutdown', 'x'))
  finish.resolve('done')
  assert.deepEqual(await execution.outcome, { kind: 'done', result: 'done' })
})

test('a failed attempt is retried with full jitter until its attempts are used up', () => {
  const failed = { kind: 'failed', error: { code: 'c', message: 'm' }, permanent: false } as const
  const delay = (attempt: number, random: number) => {
    const ended = endAttempt({ ...job, attempt }, failed, () => random)
    return ended.state === 'retrying' ? ended.delay_ms : ended.state
  }
  assert.deepEqual(
    [delay(1, 1), delay(2, 1), delay(1, 0), delay(2, 0.5), delay(3, 1)],
    [10_000, 20_000, 0, 10_000, 'failed'],
  )
  assert.equal(endAttempt(job, { ...failed, permanent: true }, () => 1).state, 'failed')
  const patient = { ...job, attempt: 20, max_attempts: 50 }
  const ended = endAttempt(patient, failed, () => 1)
  assert.equal(ended.state === 'retrying' && ended.delay_ms, 3_600_000, 'at most an hour')
})
