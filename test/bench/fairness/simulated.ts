import { AGE_SHARE } from '../../../db/rules/lanes.ts'
import { createPolicy } from '../../../worker-runtime/backtest/policies.ts'
import { simulate } from '../../../worker-runtime/backtest/simulation.ts'
import { historyOf, type Load } from './history.ts'
import { type Row, waitRow, windowRow } from './rows.ts'
import type { Execution } from './windows.ts'

const SEED = 1
const WORKERS = 4
const SLOTS = 10
const WINDOW_S = 300
/** Workers have long been busy, and runtimes are known, when the measurement begins. */
const KNOWN_FROM_S = 300

/** Runs these loads on the simulated workers of the backtest. Runtimes are predicted by the series' running means. */
const run = (loads: readonly Load[], workers = WORKERS): Execution[] => {
  const jobs = historyOf(loads, SEED)
  const weights = new Map(loads.map(({ org, weight = 1 }) => [org, weight]))
  const predicted = createPolicy('series-ewma', { seed: SEED, floorMs: 10 })
  const waitS = simulate({
    jobs,
    submitS: Float64Array.from(jobs, ({ submitS }) => submitS),
    workers,
    slots: SLOTS,
    policy: { ...predicted, ageShare: AGE_SHARE, hasShares: true },
    weightOf: (org) => weights.get(org) ?? 1,
    onProgress: () => {},
  })
  return jobs.map(({ org, submitS, runtimeMs }, n) => {
    const startedS = submitS + (waitS[n] ?? 0)
    return { org, readyS: submitS, startedS, endedS: startedS + runtimeMs / 1_000 }
  })
}

const SMALLS = ['b', 'c', 'd']
const FLOOD = { org: 'flood', runtimeS: 34 }

/** One tenant floods with 34 s jobs, three others have 1 s jobs, and there are 40 slots. */
export const simulatedRows = (): Row[] => [
  backlogged('all weights 1', 0, [1, 1, 1, 1]),
  backlogged('weights 1 : 1 : 2 : ½', 0, [1, 1, 2, 0.5]),
  // The flood's running jobs started before the others arrived, and they are not interrupted.
  backlogged('the flood was there first', 120, [1, 1, 1, 1]),
  besideFlood('others in bursts of 200', (org, n) =>
    Array.from({ length: 20 }, (_, burst) => ({
      org,
      runtimeS: 1,
      atS: KNOWN_FROM_S + 60 * burst + 20 * n,
      arrivals: { jobs: 200 },
    })),
  ),
  // Whenever nobody else waits, the flood takes the slot that frees, and keeps it for 34 s.
  ...[0.01, 0.1, 0.5].map((load) =>
    besideFlood(`others at ${100 * load} % of their share, at random`, (org) => [
      {
        org,
        runtimeS: 1,
        atS: KNOWN_FROM_S,
        arrivals: {
          perSecond: SLOTS * load,
          untilS: KNOWN_FROM_S + Math.min(1_200, 12_000 * load + 1_000),
        },
      },
    ]),
  ),
]

const backlogged = (what: string, atS: number, weights: readonly [number, number, number, number]): Row => {
  const forS = 900
  const [ofFlood, ...ofSmalls] = weights
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const worth = (weight: number): number => (WORKERS * SLOTS * forS * weight) / total
  const executions = run([
    { ...FLOOD, weight: ofFlood, atS: 0, arrivals: { perSecond: 2.5, untilS: forS + atS } },
    ...SMALLS.map((org, n) => ({
      org,
      runtimeS: 1,
      weight: ofSmalls[n] ?? 1,
      atS,
      arrivals: { jobs: Math.ceil(worth(ofSmalls[n] ?? 1)) },
    })),
  ])
  return windowRow(`34 s jobs beside 1 s jobs of three, ${what}`, executions, {
    windowS: WINDOW_S,
    weights: Object.fromEntries(['flood', ...SMALLS].map((org, n) => [org, weights[n] ?? 1])),
  })
}

const besideFlood = (what: string, loadsOf: (org: string, n: number) => Load[]): Row => {
  const flood: Load = { ...FLOOD, atS: 0, arrivals: { perSecond: 2.5, untilS: KNOWN_FROM_S + 1_200 } }
  const all = run([flood, ...SMALLS.flatMap(loadsOf)])
  return waitRow(`34 s jobs beside 1 s jobs of three, ${what}`, {
    victims: all.filter(({ org }) => org === 'b'),
    // A quarter of the slots.
    alone: run(loadsOf('b', 0), 1),
    all,
    slots: WORKERS * SLOTS,
    times: 2,
  })
}
