import type { Context } from 'hono'
import type { AppEnv } from '../context.ts'
import { log } from './log.ts'

/** Keeps work going after the answer has been sent, or the client has hung up. */
export type Hold = (work: Promise<unknown>) => void

export const holdOf =
  (c: Context<AppEnv>): Hold =>
  (work) =>
    c.executionCtx.waitUntil(work)

/** Of work that no request waits for. */
export const logFailure = (error: unknown): void => {
  log('error', 'work in the background failed', { error: String(error) })
}
