import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import { type ExecutionTools, startExecution } from '../../worker-runtime/executor.ts'
import {
  defineJob,
  type JobContext,
  JobError,
  type JobHandler,
  snooze,
} from '../../worker-runtime/handler-api.ts'
import { ExecutionAborted, endAttempt, type Outcome } from '../../worker-runtime/outcome.ts'
import { HOSTILE } from '../support/hostile-values.ts'

const job: ClaimedJob = {
  job_id: 'j',
  token: 't',
  type: 'test',
  name: 'n',
  payload: {},
  attempt: 1,
  timeout_seconds: null,
  predicted_p99_ms: null,
  cpu_units: 1,
  memory_mb: 64,
  org_id: 'o',
  series_id: '1',
  checkpoint: null,
  trace: null,
  turn: null,
}
const silent = () => {}
const saved: unknown[] = []
const reported: unknown[] = []
const tools: ExecutionTools = {
  logFor: () => ({ debug: silent, info: silent, warn: silent, error: silent }),
  reportProgress: ({ job_id }, fraction, note) => reported.push([job_id, fraction, note]),
  saveCheckpoint: async ({ job_id }, state) => void saved.push([job_id, state]),
  fetch: () => Promise.reject(),
  sessionsFor: () => assert.fail('no database'),
  autoTimeout: 10,
  onError: assert.fail,
}
const execute = (handler: JobHandler, overrides: Partial<ClaimedJob> = {}) => {
  const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
  return { ...startExecution({ ...job, ...overrides }, handler, tools, resolve), outcome }
}
const handler = (run: JobHandler['run'], schema: z.ZodType = z.object({})) =>
  defineJob({ type: 'test', schema, run })

test('what a handler returns is the outcome; nothing is null', async () => {
  const resultOf = async (result: unknown) => await execute(handler(async () => result)).outcome
  assert.deepEqual(await resultOf({ a: 1 }), { kind: 'done', resultJson: '{"a":1}' })
  assert.deepEqual(await resultOf(undefined), { kind: 'done', resultJson: null })
  assert.deepEqual(await resultOf(null), { kind: 'done', resultJson: null })
  assert.deepEqual(await resultOf(false), { kind: 'done', resultJson: 'false' })
})

const faults: [string, JobHandler, string, boolean][] = [
  ['an error', handler(() => Promise.reject(new Error('x'))), 'handler_error', false],
  [
    'a permanent error',
    handler(() => Promise.reject(new JobError('gone', 'x', { permanent: true }))),
    'gone',
    true,
  ],
  [
    'a timeout of its own',
    handler(() => Promise.reject(new JobError('timeout', 'x'))),
    'handler_timeout',
    false,
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

for (const [what, { make, code }] of Object.entries(HOSTILE)) {
  test(`${what} fails the attempt that throws it, with a storable message`, async () => {
    const outcome = await execute(handler(() => Promise.reject(make()))).outcome
    assert.ok(outcome.kind === 'failed')
    assert.equal(outcome.error.code, code)
    assert.ok(outcome.error.message.length <= 4_000)
    assert.equal(typeof outcome.permanent, 'boolean')
    assert.deepEqual(structuredClone(outcome), outcome)
  })

  test(`${what} thrown while the result is read is reported as a result that is not JSON`, async () => {
    const toJSON = (): never => {
      throw make()
    }
    const outcome = await execute(handler(async () => ({ toJSON }))).outcome
    assert.ok(outcome.kind === 'failed')
    assert.equal(outcome.error.code, 'unstorable_result')
  })
}

test('a result that misbehaves when read is reported as not JSON', async () => {
  for (const what of ['a proxy full of traps', 'a revoked proxy']) {
    const outcome = await execute(handler(async () => ({ inner: HOSTILE[what]?.make() }))).outcome
    assert.equal(outcome.kind === 'failed' && outcome.error.code, 'unstorable_result', what)
  }
  const getter = Object.defineProperty({}, 'a', { enumerable: true, get: () => assert.fail('a trap') })
  const outcome = await execute(handler(async () => getter)).outcome
  assert.equal(outcome.kind === 'failed' && outcome.error.code, 'unstorable_result')
})

test('a checkpoint is read once, when the handler saves it', async () => {
  let reads = 0
  const state = { toJSON: () => (reads++ === 0 ? { page: 1 } : assert.fail('read again')) }
  await execute(handler(async (_, ctx) => ctx.checkpoint(state))).outcome
  assert.equal(JSON.stringify(saved.at(-1)), '["j",{"page":1}]')
})

test('an outcome that the worker fails to handle is not an unhandled rejection', async () => {
  const { promise, resolve } = Promise.withResolvers<Error>()
  const broken = (): never => {
    throw new Error('a bug')
  }
  startExecution(
    job,
    handler(async () => 1),
    { ...tools, onError: resolve },
    broken,
  )
  assert.equal((await promise).message, 'a bug')
})

const untilAborted = handler(
  (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
)

test('an abort decides the outcome, whatever the handler throws because of it', async () => {
  for (const [why, kind] of [
    ['timeout', 'failed'],
    ['lease_lost', 'lost'],
    ['cancelled', 'lost'],
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
  assert.deepEqual(await execution.outcome, { kind: 'done', resultJson: '"done"' })
})

test('what a handler asks to wait is reported, and whether it gives up', async () => {
  const reportOf = async (options: ConstructorParameters<typeof JobError>[2]) => {
    const outcome = await execute(handler(() => Promise.reject(new JobError('busy', 'x', options)))).outcome
    assert.ok(outcome.kind === 'failed')
    const ended = endAttempt(job, outcome, 7)
    return ended.outcome === 'failed' && [ended.permanent, ended.retryAfterMs]
  }
  assert.deepEqual(await reportOf({ retryAfterSeconds: 120 }), [false, 120_000])
  assert.deepEqual(await reportOf({}), [false, undefined])
  assert.deepEqual(await reportOf({ retryAfterSeconds: Number.NaN }), [false, undefined])
  assert.deepEqual(await reportOf({ permanent: true, retryAfterSeconds: 5 }), [true, 5_000])
})

test('a finished or snoozed attempt ends as what it is, with its lease and its runtime', () => {
  const lease = { job_id: 'j', token: 't', org_id: 'o', series_id: '1', ranMs: 7 }
  assert.deepEqual(endAttempt(job, { kind: 'done', resultJson: '1' }, 7), {
    ...lease,
    attempt: 1,
    outcome: 'completed',
    resultJson: '1',
  })
  assert.deepEqual(endAttempt({ ...job, attempt: 3 }, { kind: 'snoozed', ms: 5 }, 7), {
    ...lease,
    attempt: 3,
    outcome: 'snoozed',
    delayMs: 5,
  })
})

test('a handler that says later is snoozed, for a month at most', async () => {
  const asleep = async (seconds: number) => await execute(handler(async () => snooze(seconds))).outcome
  assert.deepEqual(await asleep(90), { kind: 'snoozed', ms: 90_000 })
  assert.deepEqual(await asleep(-1), { kind: 'snoozed', ms: 0 })
  assert.deepEqual(await asleep(Number.NaN), { kind: 'snoozed', ms: 0 })
  assert.deepEqual(await asleep(1e9), { kind: 'snoozed', ms: 30 * 86_400_000 })
})

test('a handler is told its job, its attempt, its fencing token and the last checkpoint', async () => {
  let seen: JobContext | undefined
  const look = handler(async (_, context) => {
    seen = context
  })
  await execute(look, { attempt: 2, checkpoint: { page: 3 } }).outcome
  assert.deepEqual(
    [seen?.jobId, seen?.attempt, seen?.fencingToken, seen?.lastCheckpoint],
    ['j', 2, 't', { page: 3 }],
  )
})

test('progress and checkpoints reach the worker, a checkpoint that is too large fails', async () => {
  saved.length = reported.length = 0
  const outcome = await execute(
    handler(async (_, context) => {
      context.progress(0.5, 'half')
      await context.checkpoint({ page: 3 })
      await context.checkpoint(undefined)
      await context.checkpoint('x'.repeat(300_000))
    }),
  ).outcome
  assert.deepEqual(reported, [['j', 0.5, 'half']])
  assert.deepEqual(saved, [
    ['j', { page: 3 }],
    ['j', null],
  ])
  assert.match(outcome.kind === 'failed' ? outcome.error.message : '', /^A checkpoint of 300002 bytes/)
})

test('a signal that is asked for after the abort is aborted', async () => {
  const started = Promise.withResolvers<void>()
  const aborted = Promise.withResolvers<void>()
  let reason: unknown
  const execution = execute(
    handler(async (_, context) => {
      started.resolve()
      await aborted.promise
      reason = context.signal.reason
    }),
  )
  await started.promise
  const why = new ExecutionAborted('cancelled', 'x')
  execution.abort(why)
  aborted.resolve()
  assert.deepEqual(await execution.outcome, { kind: 'lost', cancelled: true })
  assert.equal(reason, why)
})

test('an attempt that runs longer than its timeout fails, and may be retried', async () => {
  const outcome = await execute(untilAborted, { timeout_seconds: 0.01 }).outcome
  assert.deepEqual(outcome, {
    kind: 'failed',
    error: { code: 'timeout', message: 'The attempt ran longer than 0.01 s.' },
    permanent: false,
  })
})

const ADVICE =
  'The attempt ran longer than 60 s, a limit derived from the p99 of such jobs, 2.5 s (10 times that, and at least 60 s). Set timeout_seconds to choose another.'

/** After how many seconds an attempt that does not end is ended; undefined if it is not within an hour. */
const endedAfter = async (t: TestContext, overrides: Partial<ClaimedJob>, autoTimeout = 10) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let outcome: Outcome | undefined
  startExecution({ ...job, ...overrides }, untilAborted, { ...tools, autoTimeout }, (given) => {
    outcome = given
  })
  let seconds = 0
  for (; seconds <= 3_600 && !outcome; seconds += 5) {
    await new Promise((resolve) => setImmediate(resolve))
    if (!outcome) t.mock.timers.tick(5_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.mock.timers.reset()
  return outcome ? { seconds, outcome } : undefined
}

test('without a timeout an attempt may take ten times the p99 of its series, and a minute at least', async (t) => {
  const short = await endedAfter(t, { predicted_p99_ms: 2_500 })
  assert.deepEqual(short, {
    seconds: 60,
    outcome: { kind: 'failed', error: { code: 'timeout', message: ADVICE }, permanent: false },
  })
  const long = await endedAfter(t, { predicted_p99_ms: 20_000 })
  assert.equal(long?.seconds, 200)
  const other = await endedAfter(t, { predicted_p99_ms: 20_000 }, 3)
  assert.equal(other?.seconds, 60)
})

test('no limit is derived where little is known, where it is turned off, or beyond what a timer can wait', async (t) => {
  assert.equal(await endedAfter(t, { predicted_p99_ms: null }), undefined)
  assert.equal(await endedAfter(t, { predicted_p99_ms: 1 }, 0), undefined)
  assert.equal(await endedAfter(t, { predicted_p99_ms: 1e9 }), undefined)
})

test('a timeout that was asked for stands, whatever the p99', async (t) => {
  const asked = await endedAfter(t, { predicted_p99_ms: 1, timeout_seconds: 300 })
  assert.equal(asked?.seconds, 300)
  assert.match(JSON.stringify(asked?.outcome), /ran longer than 300 s\."/)
})

test('a handler that ignores the abort is left behind after a while', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const execution = execute(handler(() => new Promise(() => {})))
  execution.abort(new ExecutionAborted('timeout', 'x'))
  t.mock.timers.tick(5_000)
  assert.equal((await execution.outcome).kind, 'failed')
})
