import type { Arena } from '../queue/arena.ts'
import { percentile } from '../report.ts'
import type { Load } from './history.ts'
import { runOnWorkers } from './real-workers.ts'
import { atMost, type Row, waitRow, windowRow } from './rows.ts'
import type { Execution } from './windows.ts'

const SEED = 1

/** An attack: what one organisation submits, and what another does beside it. */
type Attack = { scenario: string; attacker: Load; victim: Load; slots: number }

/**
 * Runtimes are chosen so that a queue without shares has the delays of 0.7: 360 jobs of 50 ms on eight slots take
 * 2.25 s, 360 of 100 ms 4.5 s, and 150 of 1.4 s 26 s.
 */
export const ATTACKS: readonly Attack[] = [
  {
    scenario: '360 low jobs, 50 ms, due in 1 s, against 40 critical, 100 ms',
    attacker: {
      org: 'attacker',
      runtimeS: 0.05,
      atS: 0.1,
      arrivals: { jobs: 360 },
      priority: 'low',
      deadlineS: 1,
    },
    victim: { org: 'victim', runtimeS: 0.1, atS: 0.15, arrivals: { jobs: 40 }, priority: 'critical' },
    slots: 8,
  },
  {
    scenario: '360 critical jobs, 100 ms, against normal ones, 100 ms, 4 a second',
    attacker: { org: 'attacker', runtimeS: 0.1, atS: 0.1, arrivals: { jobs: 360 }, priority: 'critical' },
    victim: { org: 'victim', runtimeS: 0.1, atS: 0.15, arrivals: { perSecond: 4, untilS: 6 } },
    slots: 8,
  },
  {
    scenario: '150 critical jobs, 1.4 s, beside a small tenant, 200 ms, 2 a second',
    attacker: { org: 'attacker', runtimeS: 1.4, atS: 0.1, arrivals: { jobs: 150 }, priority: 'critical' },
    victim: { org: 'victim', runtimeS: 0.2, atS: 0.15, arrivals: { perSecond: 2, untilS: 20 } },
    slots: 8,
  },
]

/** Limit: 1.5 × the victim's p95 wait when it runs alone on half of the slots, plus the time until a slot frees. */
export const attackRows = async (arena: Arena, options: Options): Promise<Row[]> => {
  const rows: Row[] = []
  for (const { scenario, attacker, victim, slots } of options.quick ? ATTACKS.slice(0, 2) : ATTACKS) {
    options.say(`${scenario}…`)
    const together: Execution[] = []
    const alone: Execution[] = []
    const victims: Execution[] = []
    for (let seed = SEED; seed < SEED + options.rounds; seed++) {
      const all = await runOnWorkers(arena, [attacker, victim], { workers: 1, slots, seed })
      together.push(...all)
      victims.push(...all.filter(({ org }) => org === 'victim'))
      alone.push(...(await runOnWorkers(arena, [victim], { workers: 1, slots: slots / 2, seed })))
    }
    rows.push(waitRow(scenario, { victims, alone, all: together, slots, times: 1.5 }))
  }
  return rows
}

type Options = { quick: boolean; rounds: number; say: (line: string) => void }

const WORKERS = 4
const SLOTS = 10

/** The simulated flood on real workers, with runtimes a tenth as long. */
export const realPeerRows = async (arena: Arena, options: Options): Promise<Row[]> => {
  const forS = options.quick ? 40 : 100
  const share = (WORKERS * SLOTS) / 4
  const smalls = ['b', 'c', 'd']
  const scenario = 'real workers, one tenant with 3.4 s jobs, three with 0.1 s jobs'
  options.say(`${scenario}, all backlogged…`)
  const backlogged = await runOnWorkers(
    arena,
    [
      { org: 'flood', runtimeS: 3.4, atS: 0, arrivals: { jobs: Math.ceil((share * forS) / 3.4) } },
      ...smalls.map((org) => ({ org, runtimeS: 0.1, atS: 0, arrivals: { jobs: share * 10 * forS } })),
    ],
    { workers: WORKERS, slots: SLOTS, seed: SEED },
  )
  const weights = Object.fromEntries(['flood', ...smalls].map((org) => [org, 1]))
  options.say('The same, but the others submit in bursts…')
  const bursts = smalls.flatMap((org, n) =>
    Array.from({ length: forS / 10 }, (_, burst) => ({
      org,
      runtimeS: 0.1,
      atS: 5 + 10 * burst + 3 * n,
      arrivals: { jobs: 200 },
    })),
  )
  const flood: Load = { org: 'flood', runtimeS: 3.4, atS: 0, arrivals: { jobs: 12 * forS } }
  const beside = await runOnWorkers(arena, [flood, ...bursts], {
    workers: WORKERS,
    slots: SLOTS,
    seed: SEED,
    until: (org) => org !== 'flood',
  })
  const alone = await runOnWorkers(
    arena,
    bursts.filter(({ org }) => org === 'b'),
    { workers: 1, slots: share, seed: SEED },
  )
  return [
    windowRow(scenario, backlogged, { windowS: 30, weights }),
    waitRow(`${scenario}, in bursts of 200`, {
      victims: beside.filter(({ org }) => org === 'b'),
      alone,
      all: beside,
      slots: WORKERS * SLOTS,
      times: 2,
    }),
  ]
}

/** One of a thousand tenants has a million jobs queued, and the others together need half of the capacity. */
export const thousandTenantsRow = async (arena: Arena, options: Options): Promise<Row> => {
  const [tenants, queued, forS] = options.quick ? [100, 10_000, 10] : [1_000, 1_000_000, 60]
  const scenario = `${tenants} tenants, one with ${queued.toLocaleString('en')} jobs queued`
  options.say(`${scenario}…`)
  const perSecond = (WORKERS * SLOTS) / 0.1 / 2 / (tenants - 1)
  const others = Array.from({ length: tenants - 1 }, (_, n) => ({
    org: `tenant ${n}`,
    runtimeS: 0.1,
    atS: 1,
    arrivals: { perSecond, untilS: 1 + forS },
  }))
  const flood: Load = { org: 'flood', runtimeS: 0.1, atS: 0, arrivals: { jobs: queued } }
  const executions = await runOnWorkers(arena, [flood, ...others], {
    workers: WORKERS,
    slots: SLOTS,
    seed: SEED,
    until: (org) => org !== 'flood',
  })
  const waits = executions.flatMap(({ org, readyS, startedS }) =>
    org === 'flood' ? [] : [startedS - readyS],
  )
  return atMost({
    scenario,
    what: `the others' p99 from submission to start, ${waits.length} jobs`,
    measured: percentile(waits, 0.99),
    limit: 1,
    unit: 's',
  })
}
