import { createRandom } from '../../../functions/prediction/lstm/random.ts'

/** A job of the workload: when it is submitted, and what it is. */
export type PlannedJob = {
  atMs: number
  tenant: string
  name: string
  priority: 'high' | 'normal' | 'low'
  timeoutSeconds: number | undefined
  /** Bytes of what it sends. */
  bytes: number
}

type Kind = {
  name: string
  /** How often, relative to the others. */
  weight: number
  runtimeMs: (bytes: number, random: () => number) => number
  bytes?: (random: () => number) => number
  priority?: PlannedJob['priority']
  timeoutSeconds?: number
}

const about = (ms: number, random: () => number): number => ms * (0.9 + 0.2 * random())

/** What teams run: the same every time, as long as what they are given, or one of two. */
const KINDS: Kind[] = [
  { name: 'ping', weight: 30, runtimeMs: (_, random) => about(100, random) },
  { name: 'notify', weight: 15, runtimeMs: (_, random) => about(50, random), priority: 'high' },
  {
    name: 'render',
    weight: 30,
    bytes: (random) => Math.round(500 * 20 ** random()),
    runtimeMs: (bytes, random) => about(bytes / 10, random),
  },
  {
    name: 'report',
    weight: 20,
    // The cache has it, or not.
    runtimeMs: (_, random) => about(random() < 0.8 ? 200 : 1_500, random),
    timeoutSeconds: 30,
  },
  { name: 'export', weight: 5, runtimeMs: (_, random) => about(1_200, random), priority: 'low' },
]

/** A wave: more than the slots can take, and then less. */
const WAVE_MS = 10_000
/** Work that arrives, relative to what the slots can take, at the top of a wave and at its bottom. */
const LOAD = { top: 1.5, bottom: 0.4 }
/** Of the mix above: measured over many draws. */
const MEAN_RUNTIME_MS = 283

type Plan = { durationMs: number; slots: number; seed: number }

/** One tenant, in waves. */
export const planWaves = (plan: Plan): PlannedJob[] =>
  arrivals(plan, 'bench', (atMs) => (atMs % WAVE_MS < WAVE_MS / 2 ? LOAD.top : LOAD.bottom))

/** A flood every so often, as of a nightly export: all at once, and a third of a minute's work of all slots. */
const FLOOD_EVERY_MS = 20_000
const FLOOD_JOBS = 100

/** Three tenants that compete: one floods the queue, one submits steadily, one comes in waves. Together 0.9 of the slots. */
export const planTenants = (plan: Plan): PlannedJob[] => {
  const random = createRandom(plan.seed + 3)
  const floods = Math.ceil(plan.durationMs / FLOOD_EVERY_MS)
  const flood = Array.from({ length: floods * FLOOD_JOBS }, (_, n) =>
    draw(random, 'flood', Math.floor(n / FLOOD_JOBS) * FLOOD_EVERY_MS),
  )
  const steady = arrivals({ ...plan, seed: plan.seed + 1 }, 'steady', () => 0.25)
  const waves = arrivals({ ...plan, seed: plan.seed + 2 }, 'waves', (atMs) =>
    atMs % WAVE_MS < WAVE_MS / 2 ? 0.5 : 0.1,
  )
  return [...flood, ...steady, ...waves].sort((a, b) => a.atMs - b.atMs)
}

/** Poisson arrivals that the seed decides, by the load at each time, relative to what the slots can take. */
const arrivals = (
  { durationMs, slots, seed }: Plan,
  tenant: string,
  loadAt: (atMs: number) => number,
): PlannedJob[] => {
  const random = createRandom(seed)
  const jobs: PlannedJob[] = []
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - random()) * MEAN_RUNTIME_MS) / (loadAt(atMs) * slots)
    if (atMs >= durationMs) return jobs
    jobs.push(draw(random, tenant, atMs))
  }
}

const draw = (random: () => number, tenant: string, atMs: number): PlannedJob => {
  const kind = pick(random)
  return {
    atMs,
    tenant,
    name: kind.name,
    priority: kind.priority ?? 'normal',
    timeoutSeconds: kind.timeoutSeconds,
    bytes: kind.bytes?.(random) ?? 0,
  }
}

/** How long the job takes, drawn when it runs. */
export const createRuntimes = (seed: number) => {
  const random = createRandom(seed)
  return (name: string, bytes: number): number =>
    KINDS.find((kind) => kind.name === name)?.runtimeMs(bytes, random) ?? 0
}

const pick = (random: () => number): Kind => {
  let left = random() * KINDS.reduce((sum, { weight }) => sum + weight, 0)
  const found = KINDS.find(({ weight }) => {
    left -= weight
    return left < 0
  })
  return found ?? (KINDS[0] as Kind)
}
