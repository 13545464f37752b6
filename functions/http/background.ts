import type { Context } from 'hono'
import type { AppEnv } from '../context.ts'

/** Keeps work going after the answer has been sent, or the client has hung up. */
export type Hold = (work: Promise<unknown>) => void

export const holdOf =
  (c: Context<AppEnv>): Hold =>
  (work) =>
    c.executionCtx.waitUntil(work)
