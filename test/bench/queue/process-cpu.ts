import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts in hundredths of a second, whatever the kernel's own tick is. */
const MS_PER_TICK = 10

/**
 * CPU time of a process and its children, ended ones included; undefined where there is no /proc. A child's time
 * moves to its parent's account when the parent reaps it, so the sum only grows.
 */
export const treeCpuMs = (root: number): number | undefined => {
  const own = readStat(String(root))
  if (!own) return undefined
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(name) ?? [])
    .filter(({ parent }) => parent === root)
  const ticks = [own, ...children].reduce((sum, { ticks }) => sum + ticks, 0)
  return ticks * MS_PER_TICK
}

const readStat = (pid: string): { parent: number; ticks: number } | undefined => {
  try {
    // pid (name) state parent … with utime stime cutime cstime as fields 14 to 17; the name may hold anything.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { parent: Number(fields[1]), ticks }
  } catch {
    // It has ended in the meantime, or there is no /proc.
    return undefined
  }
}
