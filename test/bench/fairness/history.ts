import type { Priority } from '../../../db/rules/priority.ts'
import { createRandom } from '../../../functions/prediction/lstm/random.ts'
import type { PastJob } from '../../../worker-runtime/backtest/history.ts'

/** What one organisation submits. */
export type Load = {
  org: string
  weight?: number
  runtimeS: number
  /** `jobs`: all at once at `atS`. `perSecond`: at random from `atS` until `untilS`. */
  atS: number
  arrivals: { jobs: number } | { perSecond: number; untilS: number }
  /** On real workers only. */
  priority?: Priority
  /** In seconds after the submission. On real workers only. */
  deadlineS?: number
}

/** Runtimes vary by ±10 %. */
const SPREAD = 0.1

/** The jobs of all loads, in order of submission. The same seed makes the same jobs. */
export const historyOf = (loads: readonly Load[], seed: number): PastJob[] =>
  loads
    .flatMap((load, n) => jobsOf(load, createRandom(seed * 1_000 + n)))
    .sort((a, b) => a.submitS - b.submitS)
    .map((job, n) => ({ ...job, id: String(n) }))

const jobsOf = ({ org, runtimeS, atS, arrivals }: Load, random: () => number): PastJob[] =>
  submissionsOf(atS, arrivals, random).map((submitS) => ({
    id: '',
    submitS,
    waitS: 0,
    runtimeMs: 1_000 * runtimeS * (1 + SPREAD * (2 * random() - 1)),
    type: 'simulated',
    name: `${runtimeS} s`,
    org,
    cpu: 0,
    memoryMb: 0,
    requestedMs: 0,
    payloadSize: 0,
    dependsOn: [],
  }))

const submissionsOf = (atS: number, arrivals: Load['arrivals'], random: () => number): number[] => {
  if ('jobs' in arrivals) return Array.from({ length: arrivals.jobs }, () => atS)
  const times: number[] = []
  const gapS = (): number => -Math.log(1 - random()) / arrivals.perSecond
  for (let nowS = atS + gapS(); nowS < arrivals.untilS; nowS += gapS()) times.push(nowS)
  return times
}
