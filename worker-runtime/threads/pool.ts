import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { AnyJobHandler, JobHandler, ThreadedJobHandler } from '../handler-api.ts'
import { type JobThread, startJobThread } from './job-thread.ts'
import { forgetHeapFlags } from './limits.ts'
import type { ThreadSettings } from './messages.ts'
import { CLOSE_MS, runInThread } from './thread-attempt.ts'

/** Threads for handlers that compute. Each attempt has one to itself; one that ended well serves the next of its module. */
export type ThreadPool = {
  /** A handler as the executor knows it: one that runs in threads dispatches to them. */
  toJobHandler(handler: AnyJobHandler): JobHandler
  /** Ends all threads; those of attempts that have just ended may close what they have opened. Twice is safe. */
  close(): Promise<void>
}

/** To start a thread and to load a handler into it costs: a burst of jobs should not pay it each time. */
const IDLE_MS = 30_000
const MAX_IDLE_PER_MODULE = 2

export const createThreadPool = (settings: ThreadSettings): ThreadPool => {
  forgetHeapFlags()
  const threads = new Set<JobThread>()
  const busy = new Set<Promise<void>>()
  const idle = new Map<JobThread, { module: string; timer: NodeJS.Timeout }>()

  const idleOf = (module: URL): JobThread[] =>
    [...idle].filter(([, kept]) => kept.module === module.href).map(([thread]) => thread)

  const forget = (thread: JobThread): void => {
    clearTimeout(idle.get(thread)?.timer)
    idle.delete(thread)
  }

  const take = (module: URL): JobThread => {
    const [kept] = idleOf(module)
    if (!kept) return start()
    forget(kept)
    return kept
  }

  const start = (): JobThread => {
    const thread = startJobThread(settings)
    threads.add(thread)
    thread.ended.then(() => {
      threads.delete(thread)
      forget(thread)
    })
    return thread
  }

  const giveBack = (thread: JobThread, module: URL): void => {
    thread.free()
    if (idleOf(module).length >= MAX_IDLE_PER_MODULE || !threads.has(thread)) {
      thread.end()
      return
    }
    const timer = setTimeout(() => thread.end(), IDLE_MS).unref()
    idle.set(thread, { module: module.href, timer })
  }

  const dispatch =
    (module: URL): JobHandler['run'] =>
    (payload, ctx) => {
      const thread = take(module)
      const { result, reusable } = runInThread(thread, module, payload, ctx)
      const over = reusable.then((isReusable) => {
        if (isReusable) giveBack(thread, module)
        else thread.end()
        busy.delete(over)
      })
      busy.add(over)
      return result
    }

  const close = async (): Promise<void> => {
    await Promise.race([Promise.all(busy), delay(CLOSE_MS, undefined, { ref: false })])
    await Promise.all([...threads].map((thread) => thread.end()))
  }

  return {
    close,
    toJobHandler: (handler) =>
      isThreaded(handler) ? { ...checked(handler), run: dispatch(handler.module) } : handler,
  }
}

const isThreaded = (handler: AnyJobHandler): handler is ThreadedJobHandler => 'module' in handler

const checked = ({ type, schema, module }: ThreadedJobHandler) => {
  if (existsSync(module)) return { type, schema }
  throw new Error(`The handler of ${type} jobs names ${module.href}, which does not exist`)
}
