import { align } from '../queue/tables.ts'
import { percentile } from '../report.ts'
import type { Measured } from './steps.ts'

export type StepResult = { name: string; inFlight: number; servers: Record<string, Measured> }

export const medianOf = (samples: readonly Measured[]): Measured => {
  const median = (valueIn: (sample: Measured) => number): number => percentile(samples.map(valueIn), 0.5)
  const parts = Object.keys(samples[0]?.cpuMs ?? {})
  return {
    perSecond: median(({ perSecond }) => perSecond),
    p50Ms: median(({ p50Ms }) => p50Ms),
    p99Ms: median(({ p99Ms }) => p99Ms),
    cpuMs: Object.fromEntries(parts.map((part) => [part, median(({ cpuMs }) => cpuMs[part] ?? Number.NaN)])),
  }
}

export const printSteps = (results: readonly StepResult[]): string => {
  const rows = [
    [
      'request',
      'in flight',
      'server',
      'requests/s',
      'p50 ms',
      'p99 ms',
      'CPU ms: functions',
      'gateway',
      'database',
    ],
  ]
  for (const { name, inFlight, servers } of results) {
    for (const [server, { perSecond, p50Ms, p99Ms, cpuMs }] of Object.entries(servers)) {
      const cpu = ['functions', 'gateway', 'database'].map((part) => cpuMs[part]?.toFixed(3) ?? '')
      const speed = [Math.round(perSecond).toLocaleString('en'), p50Ms.toFixed(2), p99Ms.toFixed(2)]
      rows.push([name, String(inFlight), server, ...speed, ...cpu])
    }
  }
  return align(rows)
}
