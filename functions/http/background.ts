import type { Context } from 'hono'
import type { AppEnv } from '../context.ts'

/** Keeps work going after the answer has been sent, or the client has hung up. */
export const holdOf =
  (c: Context<AppEnv>) =>
  (work: Promise<unknown>): void =>
    c.executionCtx.waitUntil(work)
