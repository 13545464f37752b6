import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type JobContext, JobError } from '../../handler-api.ts'
import { followOutput, type Output } from './output.ts'
import { endGroup, type GroupKeeper, killGroup } from './process-group.ts'

export type Ended = Output & {
  /** Null if a signal ended it. */
  exit_code: number | null
  signal: NodeJS.Signals | null
  duration_ms: number
}

type Command = {
  command: string
  args: readonly string[]
  stdin: string | undefined
  folder: string
  env: Record<string, string>
  ctx: JobContext
  groups: GroupKeeper
}

/** Between SIGTERM and SIGKILL. Below the time that the worker gives an attempt to end after an abort. */
const GRACE_MS = 2_000
/** For the last output. A process that has left the group may hold the pipe open for ever. */
const CLOSE_MS = 1_000

/** Runs it to its end, or to that of the attempt, and leaves nothing of its group behind. */
export const runProcess = async (options: Command): Promise<Ended> => {
  const { command, args, ctx, groups } = options
  ctx.signal.throwIfAborted()
  const startedAt = performance.now()
  const { child, pid } = await start(options)
  groups.add(pid, options.folder)
  ctx.log.info(
    `${command} runs as process ${pid} with ${args.length} argument${args.length === 1 ? '' : 's'}`,
  )
  const output = followOutput(child, ctx.log)
  const closed = new Promise((resolve) => child.once('close', resolve))
  const exited = untilExit(child)
  let ending: Promise<void> | undefined
  const end = (): void => {
    ending ??= endGroup(pid, GRACE_MS)
  }
  ctx.signal.addEventListener('abort', end)
  if (ctx.signal.aborted) end()
  try {
    feed(child, options.stdin)
    const { code, signal } = await exited
    // What it left in the background is over, too. After an abort that had its own time to end.
    await ending
    killGroup(pid)
    await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })])
    ctx.signal.throwIfAborted()
    const duration_ms = Math.round(performance.now() - startedAt)
    ctx.log.info(
      `it ${code === null ? `was ended by ${signal}` : `ended with code ${code}`} after ${duration_ms} ms`,
    )
    return { exit_code: code, signal, ...output.read(), duration_ms }
  } finally {
    ctx.signal.removeEventListener('abort', end)
    child.stdout.destroy()
    child.stderr.destroy()
    groups.remove(pid)
  }
}

const start = async ({ command, args, folder, env }: Command) => {
  try {
    // Detached: it leads a process group, by which all that it starts can be ended.
    const child = spawn(command, args, { cwd: folder, env, shell: false, detached: true, stdio: 'pipe' })
    await once(child, 'spawn')
    return { child, pid: child.pid as number }
  } catch (error) {
    throw notStarted(command, error as NodeJS.ErrnoException)
  }
}

/** Too many or too long arguments stay so; a file that is missing here may be there on another worker. */
const notStarted = (command: string, { code }: NodeJS.ErrnoException): JobError =>
  new JobError('not_started', `${command} could not be started: ${code}`, { permanent: code === 'E2BIG' })

const untilExit = (child: ChildProcessWithoutNullStreams) =>
  new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })

const feed = (child: ChildProcessWithoutNullStreams, stdin = ''): void => {
  // It need not read what it is given.
  child.stdin.on('error', () => {})
  child.stdin.end(stdin)
}
