import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

/** A process that was spawned `detached`, so that its pid names a group: it and all that it started. */
export type ProcessGroup = {
  readonly pid: number
  /** How it ended, in words, whoever ended it. */
  readonly exited: Promise<string>
  /** Asks it to stop, waits, and ends what is left of the group. Twice is safe. */
  stop(): Promise<void>
}

export const trackGroup = (
  child: ChildProcess,
  options: { signal: NodeJS.Signals; graceMs: number },
): ProcessGroup => {
  const { pid } = child
  if (pid === undefined) throw new Error(`could not start ${child.spawnfile}`)
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `ended by ${signal}` : `exited with code ${code}`))
  })
  return { pid, exited, stop: () => endGroup({ pid, ...options }) }
}

export const endGroup = async (group: {
  pid: number
  signal: NodeJS.Signals
  graceMs: number
}): Promise<void> => {
  signalGroup(group.pid, group.signal)
  const deadline = performance.now() + group.graceMs
  while (isAlive(group.pid) && performance.now() < deadline) await delay(25)
  signalGroup(group.pid, 'SIGKILL')
}

const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

const isAlive = (pid: number): boolean => signalGroup(pid, 0)
