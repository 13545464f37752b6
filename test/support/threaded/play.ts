import { threadId } from 'node:worker_threads'
import { type JobContext, JobError, snooze } from '../../../worker-runtime/handler-api.ts'
import { HOSTILE } from '../hostile-values.ts'

type Part = (ctx: JobContext, given: never) => unknown

let attempts = 0

/** Handlers in one module, by name. */
const parts: Record<string, Part> = {
  who: () => ({ threadId, attempts }),
  tell: async (ctx) => {
    const { jobId, orgId, attempt, fencingToken, lastCheckpoint } = ctx
    for (const level of ['debug', 'info', 'warn', 'error'] as const)
      ctx.log[level](`${level} from the thread`)
    ctx.progress(0.25, 'a quarter')
    ctx.progress(0.5, 'half')
    await ctx.checkpoint({ page: 3 })
    return { jobId, orgId, attempt, fencingToken, lastCheckpoint }
  },
  snooze: () => snooze(90),
  fail: (_, given: { code: string; permanent: boolean; retryAfterSeconds?: number }) => {
    throw new JobError(given.code, 'not today', given)
  },
  throw: () => {
    throw new Error('a plain error')
  },
  hostile: (ctx, given: string) => {
    const value = HOSTILE[given]?.make()
    ctx.log.info(value as string)
    ctx.progress(value as number, value as string)
    throw value
  },
  'uncaught hostile': (_, given: string) => {
    setImmediate(() => {
      throw HOSTILE[given]?.make()
    })
    return new Promise(() => {})
  },
  nothing: () => undefined,
  cyclic: () => {
    const a: { a?: unknown } = {}
    a.a = a
    return a
  },
  rich: () => ({ at: new Date(0), drop: () => {}, own: { toJSON: () => 'own' } }),
  large: () => 'x'.repeat(3_000_000),
  'large checkpoint': (ctx) => ctx.checkpoint('x'.repeat(300_000)),
  checkpoint: (ctx, given) => ctx.checkpoint(given),
  exit: (ctx) => {
    ctx.log.info('last words')
    process.exit(3)
  },
  'uncaught error': () => {
    setImmediate(() => {
      throw new Error('nobody listens')
    })
    return new Promise(() => {})
  },
  'out of memory': () => {
    const held: number[][] = []
    for (;;) held.push(new Array(100_000).fill(1.5))
  },
  fetch: async (ctx, given: { url: string }) => (await ctx.fetch(given.url)).text(),
  query: async (ctx, given: { text: string }) => {
    const database = await ctx.postgres('own')
    return (await database.query(given.text)).rows
  },
  wait: (ctx) =>
    new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
  'leave a timer': (ctx) => {
    setTimeout(() => ctx.log.info('too late'), 20)
    return null
  },
  flood: (ctx) => {
    for (let n = 0; n < 200_000; n++) {
      ctx.log.info(`line ${n}`)
      ctx.progress(n / 200_000)
    }
    return 'flooded'
  },
}

export const run = async ({ part, given }: { part: string; given: never }, ctx: JobContext) => {
  attempts++
  return parts[part]?.(ctx, given)
}
