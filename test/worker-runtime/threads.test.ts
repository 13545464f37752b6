import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import { parseAllowList } from '../../worker-runtime/egress/address-guard.ts'
import { type Execution, startExecution } from '../../worker-runtime/executor.ts'
import { defineThreadedJob, type JobHandler } from '../../worker-runtime/handler-api.ts'
import { YOUNG_GENERATION } from '../../worker-runtime/local/worker-process.ts'
import { ExecutionAborted, type Outcome } from '../../worker-runtime/outcome.ts'
import { createThreadPool, type ThreadPool } from '../../worker-runtime/threads/pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { HOSTILE } from '../support/hostile-values.ts'
import { waitFor } from '../support/wait-for.ts'

const MODULES = new URL('../support/threaded/', import.meta.url)
const schema = z.looseObject({})
const threaded = (module: string, type = 'test') =>
  defineThreadedJob({ type, schema, module: new URL(module, MODULES) })

const claimed: ClaimedJob = {
  job_id: '01890000-0000-7000-8000-000000000001',
  token: '7',
  type: 'test',
  name: 'n',
  payload: {},
  attempt: 2,
  timeout_seconds: null,
  predicted_p99_ms: null,
  cpu_units: 1,
  memory_mb: 64,
  org_id: '01890000-0000-7000-8000-000000000002',
  series_id: '1',
  checkpoint: { page: 2 },
  trace: null,
  turn: null,
}

type Report = [kind: string, ...unknown[]]
type Run = { outcome: Promise<Outcome>; reports: Report[] } & Execution

let database: TestDatabase
let pool: ThreadPool
let play: JobHandler
let spin: JobHandler

before(async () => {
  database = await createTestDatabase({ empty: true })
  pool = createThreadPool({
    allow: parseAllowList('127.0.0.1'),
    connections: { own: { url: database.url } },
  })
  play = pool.toJobHandler(threaded('play.ts'))
  spin = pool.toJobHandler(threaded('spin.ts'))
})
after(async () => {
  await pool.close()
  await pool.close()
  await database.drop()
})

/** The way a worker runs an attempt, with reports in place of its writers. */
const start = (handler: JobHandler, payload: Record<string, unknown>): Run => {
  const reports: Report[] = []
  const log = (level: string) => (message: string) => void reports.push(['log', level, message])
  const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
  const execution = startExecution(
    { ...claimed, payload },
    handler,
    {
      logFor: () => ({ debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }),
      reportProgress: (_, ...report) => void reports.push(['progress', ...report]),
      saveCheckpoint: async (_, state) => {
        if (state === 'unlucky') throw new Error('the database is away')
        reports.push(['checkpoint', state])
      },
      fetch: () => assert.fail('the thread has its own'),
      sessionsFor: () => assert.fail('the thread has its own'),
      autoTimeout: 10,
      onError: assert.fail,
    },
    resolve,
  )
  return { ...execution, outcome, reports }
}
const perform = (part: string, given?: unknown): Run => start(play, { part, given })
const errorOf = async ({ outcome }: Run) => {
  const ended = await outcome
  return ended.kind === 'failed'
    ? { ...ended, message: ended.error.message, code: ended.error.code }
    : assert.fail(ended.kind)
}
const resultOf = async ({ outcome }: Run) => {
  const ended = await outcome
  return ended.kind === 'done' ? JSON.parse(ended.resultJson ?? 'null') : assert.fail(JSON.stringify(ended))
}
const who = (): Promise<{ threadId: number; attempts: number }> => resultOf(perform('who'))
const abort = (run: Run, why: ExecutionAborted['why']): void =>
  run.abort(new ExecutionAborted(why, `told: ${why}`))

describe('the ctx in a thread', () => {
  it('says who the job is, and passes log, progress and checkpoints on', async () => {
    const told = perform('tell')
    assert.deepEqual(await resultOf(told), {
      jobId: claimed.job_id,
      orgId: claimed.org_id,
      attempt: 2,
      fencingToken: '7',
      lastCheckpoint: { page: 2 },
    })
    assert.deepEqual(told.reports, [
      ['log', 'debug', 'debug from the thread'],
      ['log', 'info', 'info from the thread'],
      ['log', 'warn', 'warn from the thread'],
      ['log', 'error', 'error from the thread'],
      ['progress', 0.25, 'a quarter'],
      ['checkpoint', { page: 3 }],
      ['progress', 0.5, 'half'],
    ])
  })

  it('has a fetch of its own, with the same guard and the same exceptions', async (t) => {
    const server = createServer((_, response) => response.end('reached')).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    assert.equal(await resultOf(perform('fetch', { url: `http://127.0.0.1:${port}/` })), 'reached')
    const refused = await errorOf(perform('fetch', { url: `http://[::1]:${port}/` }))
    assert.deepEqual([refused.code, refused.permanent], ['address_refused', true])
  })

  it('reaches named databases, and leaves no session behind', async () => {
    const [row] = await resultOf(
      perform('query', { text: `select current_setting('application_name') as name` }),
    )
    assert.equal(row.name, `smartqueue job ${claimed.job_id}`)
    await waitFor('its end', async () => (await sessions()).length === 0)
  })

  it('ends a statement that runs when the attempt is aborted, on the server too', async () => {
    const run = perform('query', { text: 'select pg_sleep(60)' })
    await waitFor('the statement', async () => (await sessions()).some(({ query }) => /pg_sleep/.test(query)))
    const abortedAt = performance.now()
    abort(run, 'cancelled')
    assert.deepEqual(await run.outcome, { kind: 'lost', cancelled: true })
    assert.ok(performance.now() - abortedAt < 450, 'not by the end of the thread')
    await waitFor('its end', async () => (await sessions()).length === 0, 3_000)
  })

  it('refuses a checkpoint that is too large, and tells of one that could not be stored', async () => {
    assert.match((await errorOf(perform('large checkpoint'))).message, /^A checkpoint of 300002 bytes/)
    assert.equal((await errorOf(perform('checkpoint', 'unlucky'))).message, 'the database is away')
  })

  it('holds a flood of reports down to what can be used', async () => {
    const flood = perform('flood')
    assert.equal(await resultOf(flood), 'flooded')
    assert.equal(flood.reports.filter(([kind]) => kind === 'log').length, 10_000)
    const progress = flood.reports.filter(([kind]) => kind === 'progress')
    assert.ok(progress.length < 100, `${progress.length} reports of progress`)
    assert.deepEqual(progress.at(-1), ['progress', 199_999 / 200_000, undefined], 'the newest is not lost')
  })
})

const sessions = () =>
  database.sql<{ query: string }>(
    `select query from pg_stat_activity where application_name like 'smartqueue job %'`,
  )

describe('the outcome of an attempt in a thread', () => {
  const outcomes: [part: string, given: unknown, expected: Partial<Outcome>][] = [
    ['nothing', undefined, { kind: 'done', resultJson: null }],
    ['rich', undefined, { kind: 'done', resultJson: '{"at":"1970-01-01T00:00:00.000Z","own":"own"}' }],
    ['snooze', undefined, { kind: 'snoozed', ms: 90_000 }],
    [
      'fail',
      { code: 'gone', permanent: true },
      { kind: 'failed', error: { code: 'gone', message: 'not today' }, permanent: true },
    ],
    [
      'fail',
      { code: 'timeout', permanent: false, retryAfterSeconds: 60 },
      {
        kind: 'failed',
        error: { code: 'handler_timeout', message: 'not today' },
        permanent: false,
        retryAfterMs: 60_000,
      },
    ],
    [
      'throw',
      undefined,
      { kind: 'failed', error: { code: 'handler_error', message: 'a plain error' }, permanent: false },
    ],
  ]
  for (const [part, given, expected] of outcomes) {
    it(`is that of any other: ${part} ${JSON.stringify(given) ?? ''}`, async () => {
      assert.deepEqual(await perform(part, given).outcome, expected)
    })
  }

  for (const [part, code] of [
    ['cyclic', 'unstorable_result'],
    ['large', 'result_too_large'],
  ] as const) {
    it(`is judged as any other: ${part}`, async () => {
      const error = await errorOf(perform(part))
      assert.deepEqual([error.code, error.permanent], [code, true])
    })
  }

  it('fails its job whatever it throws, logs or reports, and the thread keeps running', async () => {
    const { threadId } = await who()
    for (const [what, { code }] of Object.entries(HOSTILE)) {
      assert.equal((await errorOf(perform('hostile', what))).code, code, what)
    }
    assert.equal((await who()).threadId, threadId)
  })

  it('is a failure if its module cannot be loaded or exports no run', async () => {
    const broken = await errorOf(start(pool.toJobHandler(threaded('broken.ts')), {}))
    assert.match(broken.message, /broken on purpose/)
    const empty = await errorOf(start(pool.toJobHandler(threaded('empty.ts')), {}))
    assert.match(empty.message, /empty\.ts exports no function named run$/)
    assert.throws(
      () => pool.toJobHandler(threaded('missing.ts')),
      /names .*missing\.ts, which does not exist/,
    )
  })

  it('is a failure if the payload cannot be handed over', async () => {
    const transformed = schema.transform(() => ({ callback: () => {} }))
    const module = new URL('play.ts', MODULES)
    const handler = pool.toJobHandler(defineThreadedJob({ type: 'test', schema: transformed, module }))
    assert.match((await errorOf(start(handler, {}))).message, /could not be cloned/)
  })
})

describe('a thread that dies', () => {
  const deaths: [part: string, message: RegExp][] = [
    ['exit', /^The thread of this attempt died: it was left with process\.exit\(3\)\.$/],
    ['uncaught error', /^The thread of this attempt died: nobody caught "nobody listens"\.$/],
    ['out of memory', /^The thread of this attempt died: it needed more than 256 MiB of heap\.$/],
  ]
  for (const [part, message] of deaths) {
    it(`fails its attempt and nothing else: ${part}`, async () => {
      const other = start(spin, { seconds: 0.3 })
      const error = await errorOf(perform(part))
      assert.deepEqual([error.code, error.permanent], ['thread_died', false])
      assert.match(error.message, message)
      assert.equal(await resultOf(other), 'spun')
    })
  }

  it('may have thrown anything', async () => {
    const what = ['null', 'a revoked proxy', 'an error with unreadable fields']
    const errors = await Promise.all(what.map((given) => errorOf(perform('uncaught hostile', given))))
    assert.deepEqual(
      errors.map(({ code }) => code),
      what.map(() => 'thread_died'),
    )
  })

  it('is heard to the end, also by a worker that was busy when it died', async () => {
    const run = perform('exit')
    const until = performance.now() + 300
    while (performance.now() < until);
    await run.outcome
    assert.deepEqual(run.reports, [['log', 'info', 'last words']])
  })
})

describe('an abort', () => {
  for (const [why, kind] of [
    ['timeout', 'failed'],
    ['lease_lost', 'lost'],
    ['cancelled', 'lost'],
    ['shutdown', 'released'],
  ] as const) {
    it(`reaches the signal in a thread that waits (${why})`, async () => {
      const run = perform('wait')
      await who()
      const abortedAt = performance.now()
      abort(run, why)
      assert.equal((await run.outcome).kind, kind)
      assert.ok(performance.now() - abortedAt < 450, 'it ended by itself')
    })
  }

  const untilSpinning = (run: Run) => waitFor('it to spin', () => run.reports.length > 0)

  it('is seen by a computation that asks', async () => {
    const run = start(spin, { seconds: 60, heeds: true })
    await untilSpinning(run)
    const abortedAt = performance.now()
    abort(run, 'timeout')
    const error = await errorOf(run)
    assert.deepEqual([error.code, error.message], ['timeout', 'told: timeout'])
    assert.ok(performance.now() - abortedAt < 450, 'it ended by itself')
  })

  it('ends a computation that does not ask, within a second', async () => {
    const run = start(spin, { seconds: 60 })
    await untilSpinning(run)
    const abortedAt = performance.now()
    abort(run, 'cancelled')
    assert.deepEqual(await run.outcome, { kind: 'lost', cancelled: true })
    assert.ok(performance.now() - abortedAt < 1_000)
  })

  it('that comes too late for a shutdown leaves a result', async () => {
    const run = start(spin, { seconds: 0.3 })
    await untilSpinning(run)
    abort(run, 'shutdown')
    assert.equal(await resultOf(run), 'spun')
  })
})

describe('threads', () => {
  it('keep to their own limits in a worker that was started with a large young generation', () => {
    const program = fileURLToPath(new URL('heap-limit.ts', MODULES))
    const { stdout } = spawnSync(process.execPath, [YOUNG_GENERATION, program], { encoding: 'utf8' })
    const limitMb = Number(stdout) / 1024 / 1024
    assert.ok(limitMb > 250 && limitMb < 300, `${limitMb} MiB`)
  })

  it('are used again after a good end, and a failed one', async () => {
    const first = await who()
    await perform('throw').outcome
    const later = await who()
    assert.equal(later.threadId, first.threadId)
    assert.equal(later.attempts, first.attempts + 2)
  })

  it('are not used again after an abort', async () => {
    const before = await who()
    const run = perform('wait')
    assert.notEqual((await who()).threadId, before.threadId, 'it is busy')
    abort(run, 'cancelled')
    await run.outcome
    const threads = await Promise.all([who(), who(), who()])
    assert.ok(!threads.some(({ threadId }) => threadId === before.threadId))
  })

  it('do not mix up attempts: what one leaves running is silent afterwards', async () => {
    const left = perform('leave a timer')
    await left.outcome
    const next = perform('wait')
    const pause = Promise.withResolvers<void>()
    setTimeout(pause.resolve, 60)
    await pause.promise
    assert.deepEqual([left.reports, next.reports], [[], []])
    abort(next, 'cancelled')
    await next.outcome
  })
})
