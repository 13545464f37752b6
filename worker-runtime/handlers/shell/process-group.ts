import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** A process that was spawned `detached` leads a group: itself and all that it starts, unless that leaves the group. */
const LOOK_MS = 50

/** Asks all of the group to stop, and ends what is left of it after a while. */
export const endGroup = async (pid: number, graceMs: number): Promise<void> => {
  signalGroup(pid, 'SIGTERM')
  const deadline = performance.now() + graceMs
  while (isAlive(pid) && performance.now() < deadline) await delay(LOOK_MS)
  signalGroup(pid, 'SIGKILL')
}

export const killGroup = (pid: number): boolean => signalGroup(pid, 'SIGKILL')

/** False if nothing of the group is left, or nothing that may be signalled. */
const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** In a container whose first process does not reap orphans, ended processes still answer signals. */
const isAlive = (group: number): boolean =>
  signalGroup(group, 0) &&
  (!existsSync('/proc/self/stat') || readdirSync('/proc').some((name) => isLivingMember(name, group)))

const isLivingMember = (name: string, group: number): boolean => {
  if (!/^\d+$/.test(name)) return false
  try {
    // pid (program) state parent group …; the program may be called anything, also `) Z`.
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
    const [state, , memberOf] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(memberOf) === group && state !== 'Z'
  } catch {
    // It has ended in the meantime.
    return false
  }
}

export type GroupKeeper = { add(pid: number, folder: string): void; remove(pid: number): void }

/** Groups that must not outlive the worker, nor must their folders, also when it exits without putting things in order. */
export const createGroupKeeper = (): GroupKeeper => {
  const folders = new Map<number, string>()
  const endAll = (): void => {
    for (const [pid, folder] of folders) {
      killGroup(pid)
      try {
        rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
      } catch {
        // The worker is about to be gone: there is nobody left to tell.
      }
    }
  }
  return {
    add: (pid, folder) => {
      if (folders.size === 0) process.on('exit', endAll)
      folders.set(pid, folder)
    },
    remove: (pid) => {
      folders.delete(pid)
      if (folders.size === 0) process.off('exit', endAll)
    },
  }
}
