import { readFileSync } from 'node:fs'

/** The most memory that a process has had so far, in MiB; undefined where there is no /proc. */
export const peakMemoryMib = (pid: number): number | undefined => {
  try {
    const [, kib] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kib === undefined ? undefined : Math.round(Number(kib) / 1024)
  } catch {
    return undefined
  }
}
