import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts in hundredths of a second, whatever the kernel's own tick is. */
const MS_PER_TICK = 10

/**
 * CPU time of a process and its children, ended ones included; undefined where there is no /proc. A child's time
 * moves to its parent's account when the parent reaps it, so the sum only grows.
 */
export const treeCpuMs = (root: number): number | undefined => {
  const own = readProcess(String(root))
  if (!own) return undefined
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(name) ?? [])
    .filter(({ parent }) => parent === root)
  return own.reapedMs + [own, ...children].reduce((sum, { ownMs }) => sum + ownMs, 0)
}

type ProcessTimes = { parent: number; ownMs: number; reapedMs: number }

const readProcess = (pid: string): ProcessTimes | undefined => {
  try {
    // pid (name) state parent … with utime stime cutime cstime as fields 14 to 17; the name may hold anything.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15).map(Number)
    return {
      parent: Number(fields[1]),
      ownMs: readThreads(pid) ?? (utime + stime) * MS_PER_TICK,
      reapedMs: (cutime + cstime) * MS_PER_TICK,
    }
  } catch {
    // It has ended in the meantime, or there is no /proc.
    return undefined
  }
}

/** In nanoseconds where the kernel keeps them: of a hundred backends, each would lose up to a tick. */
const readThreads = (pid: string): number | undefined => {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    const nanos = threads.map((thread) =>
      Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
    )
    return nanos.reduce((sum, time) => sum + time, 0) / 1e6
  } catch {
    return undefined
  }
}
