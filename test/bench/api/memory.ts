import { readFileSync } from 'node:fs'
import type { RunningProcess } from '../../support/local-runner.ts'

/** Megabytes by process. */
export type Memory = Record<string, number>

/** What runs below `npm run dev`, by what it is. */
const NAMES: readonly [RegExp, string][] = [
  [/workerd serve/, 'functions'],
  [/wrangler|esbuild|workerd/, 'wrangler'],
  [/reaper\.ts/, 'reaper'],
  [/worker-runtime\/main\.ts/, 'worker'],
  [/dev\.ts/, 'runner and gateway'],
  [/postgres/, 'Postgres'],
]

/** Proportional set size: shared memory is divided among its processes. */
export const memoryOf = (processes: readonly RunningProcess[]): Memory => {
  const memory: Memory = {}
  for (const { pid, command } of processes) {
    const name = NAMES.find(([pattern]) => pattern.test(command))?.[1] ?? 'other'
    memory[name] = (memory[name] ?? 0) + megabytesOf(pid)
  }
  return memory
}

const megabytesOf = (pid: number): number => {
  try {
    const [, kilobytes] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
    return Number(kilobytes ?? 0) / 1024
  } catch {
    // It has ended in the meantime, or there is no /proc.
    return 0
  }
}
