import { receiveMessageOnPort } from 'node:worker_threads'
import { ExecutionAborted } from '../outcome.ts'
import type { FromThread, ThreadTask, ToThread } from './messages.ts'

/** An attempt's line to the worker, from inside its thread. */
export type AttemptPort = {
  say(message: FromThread): void
  /** Resolves when the checkpoint is stored. */
  store(json: string): Promise<void>
  readonly signal: AbortSignal
}

export const createAttemptPort = ({ port, abortFlag }: ThreadTask): AttemptPort => {
  const controller = new AbortController()
  const waiting = new Map<number, PromiseWithResolvers<void>>()
  let reason: ExecutionAborted | undefined
  let nextId = 0

  const hear = (told: ToThread): void => {
    if (told.kind === 'abort') {
      reason = new ExecutionAborted(told.why, told.message)
      controller.abort(reason)
      return
    }
    const stored = waiting.get(told.id)
    waiting.delete(told.id)
    if (told.error === undefined) stored?.resolve()
    else stored?.reject(new Error(told.error))
  }

  /** Messages arrive when a computation lets them; the flag is seen in the middle of it. */
  const findReason = (): ExecutionAborted | undefined => {
    if (reason || Atomics.load(abortFlag, 0) === 0) return reason
    for (let told = receiveMessageOnPort(port); told; told = receiveMessageOnPort(port)) hear(told.message)
    return reason
  }

  port.on('message', hear)
  return {
    say: (message) => port.postMessage(message),
    store: (json) => {
      const id = nextId++
      const stored = Promise.withResolvers<void>()
      waiting.set(id, stored)
      port.postMessage({ kind: 'checkpoint', id, json } satisfies FromThread)
      return stored.promise
    },
    signal: askingFirst(controller.signal, findReason),
  }
}

/** So that `while (!signal.aborted)` ends, although a loop that never waits hears no event. */
const askingFirst = (signal: AbortSignal, findReason: () => Error | undefined): AbortSignal =>
  Object.defineProperties(signal, {
    aborted: { get: () => findReason() !== undefined },
    throwIfAborted: {
      value: () => {
        const reason = findReason()
        if (reason) throw reason
      },
    },
  })
