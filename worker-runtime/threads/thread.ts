import { parentPort, workerData } from 'node:worker_threads'
import { giveWay } from '../give-way.ts'
import type { JobContext } from '../handler-api.ts'
import { judgeResult } from '../judge-result.ts'
import { readThrown } from '../outcome.ts'
import type { AttemptEnded, FromThread, ThreadSettings, ThreadTask } from './messages.ts'
import { createThreadContext } from './thread-context.ts'

/** A thread that runs attempts, one at a time. It gives way to the worker itself, and goes before what is learned. */
giveWay(5)

const settings: ThreadSettings = workerData

const runAttempt = async (task: ThreadTask): Promise<void> => {
  const { ctx, flush, close } = createThreadContext(task, settings)
  const say = (message: FromThread): void => task.port.postMessage(message)
  const ended = await run(task, ctx)
  flush()
  if (ctx.signal.aborted) {
    say({ ...ended, closed: false })
    await close()
    say({ kind: 'closed' })
  } else {
    await close()
    say({ ...ended, closed: true })
  }
}

const run = async (
  { module, payload }: ThreadTask,
  ctx: JobContext,
): Promise<Pick<AttemptEnded, 'kind' | 'outcome'>> => {
  try {
    const { run: handle } = await import(module)
    if (typeof handle !== 'function') throw new Error(`${module} exports no function named run`)
    ctx.signal.throwIfAborted()
    return { kind: 'returned', outcome: judgeResult(await handle(payload, ctx)) }
  } catch (thrown) {
    return { kind: 'threw', outcome: readThrown(thrown) }
  }
}

parentPort?.on('message', runAttempt)
