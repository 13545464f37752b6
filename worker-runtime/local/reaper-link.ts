import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ReaperMessage } from './reaper.ts'

type GuardedGroup = ReaperMessage['groups'][number]

export type Reaper = {
  /** The group is ended if this process vanishes. The last one started is the first to end. */
  guard(group: GuardedGroup): void
  /** The group has ended by itself: its number may become somebody else's. */
  forget(pid: number): void
  /** Everything has stopped: nothing is left to end. */
  release(): void
}

/** The runner's end of the channel to reaper.ts. */
export const startReaper = (onDeath: () => void): Reaper => {
  const child = fork(fileURLToPath(new URL('./reaper.ts', import.meta.url)), {
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  let groups: GuardedGroup[] = []
  let released = false
  const died = (): void => {
    if (!released) onDeath()
  }
  child.once('exit', died)
  // A message to a reaper that has just died.
  child.once('error', died)
  const tell = (): void => {
    if (child.connected) child.send({ groups } satisfies ReaperMessage)
  }
  return {
    guard: (group) => {
      groups.unshift(group)
      tell()
    },
    forget: (pid) => {
      groups = groups.filter((group) => group.pid !== pid)
      tell()
    },
    release: () => {
      released = true
      if (child.connected) child.send({ groups: [] } satisfies ReaperMessage, () => child.disconnect())
    },
  }
}
