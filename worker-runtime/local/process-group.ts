import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
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
  while (isAlive(group.pid) && performance.now() < deadline) await delay(50)
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

const isAlive = (pid: number): boolean => signalGroup(pid, 0) && !hasOnlyZombies(pid)

/** In a container whose first process does not reap orphans, ended processes still answer signals. */
const hasOnlyZombies = (group: number): boolean => {
  if (!existsSync('/proc/self/stat')) return false
  return membersOf(group).every(({ state }) => state === 'Z')
}

type Member = { pid: number; state: string; parent: number; group: number }

const membersOf = (group: number): Member[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readState(name) ?? [])
    .filter((member) => member.group === group)

/** Pids of the group whose program is called `program`; none where there is no /proc. */
export const findMembers = (group: number, program: string): number[] => {
  if (!existsSync('/proc/self/stat')) return []
  return membersOf(group)
    .map(({ pid }) => pid)
    .filter((pid) => readCommand(pid).some((word) => word.endsWith(`/${program}`)))
}

export const isRunning = (pid: number): boolean => {
  const state = readState(String(pid))?.state
  return state !== undefined && state !== 'Z'
}

const readCommand = (pid: number): string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

/** Who started this process, and who started that: npm runs scripts through a shell. Changes when one of them dies. */
export const parentage = (): string => `${process.ppid} ${readState(String(process.ppid))?.parent}`

const readState = (pid: string): Member | undefined => {
  try {
    // pid (name) state parent group …; the name may hold anything, also brackets.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state = '', parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid: Number(pid), state, parent: Number(parent), group: Number(group) }
  } catch {
    // It has ended in the meantime.
    return undefined
  }
}
