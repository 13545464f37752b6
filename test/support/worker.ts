import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export type TestWorker = {
  readonly id: string
  /** The log so far, one parsed line each. */
  readonly log: Record<string, unknown>[]
  /** Ends it as a pod ends: drain, then exit. Answers the exit code. */
  stop(): Promise<number | null>
  /** Ends it as a crash does: at once, with nothing put in order. */
  kill(): Promise<void>
}

const MAIN = fileURLToPath(new URL('../../worker-runtime/main.ts', import.meta.url))

/** A real worker process that may reach servers on this machine. Resolves when it claims. */
export const startWorker = async (
  databaseUrl: string,
  env: Record<string, string> = {},
): Promise<TestWorker> => {
  const child = fork(MAIN, {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      SMARTQUEUE_HTTP_ALLOW: '127.0.0.1',
      SMARTQUEUE_LOG_LEVEL: 'debug',
      ...env,
    },
  })
  const log = followLog(child)
  const exited = once(child, 'exit')
  const [message] = await Promise.race([once(child, 'message'), exited.then(() => [])])
  if (!message) throw new Error('The worker did not start')
  return {
    id: (message as { workerId: string }).workerId,
    log,
    stop: async () => {
      child.kill('SIGTERM')
      const [code] = await exited
      return code
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

const followLog = (child: ChildProcess): Record<string, unknown>[] => {
  const lines: Record<string, unknown>[] = []
  if (child.stdout)
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  return lines
}
