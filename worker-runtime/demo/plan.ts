import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { KINDS, type Kind, RARE_KINDS } from './kinds.ts'
import { PIPELINES, type Pipeline } from './pipelines.ts'
import type { Push } from './webhook-source.ts'

/** Something that a tenant does, and when. */
export type Planned = { atMs: number } & Action

export type Action =
  | { do: 'submit'; kind: Kind }
  /** Sent twice with the same key, as by a client whose connection broke. */
  | { do: 'submit-twice'; kind: Kind }
  | { do: 'submit-for-later'; kind: Kind; delaySeconds: number }
  | { do: 'submit-and-cancel'; kind: Kind; afterMs: number }
  | { do: 'submit-pipeline'; pipeline: Pipeline }
  | { do: 'deliver'; push: Push }

/** A wave: less than the slots can take, and then more. It begins low, while nothing is known of the jobs yet. */
const WAVE_MS = 20_000
const LOAD = { bottom: 0.5, top: 1.5 }
const REPLAYED = 0.02

/** Poisson arrivals in waves, and at set times what must be seen also in a short run. The seed decides all of it. */
export const planDemo = (options: { durationMs: number; rate: number; seed: number }): Planned[] => {
  const { durationMs, rate } = options
  const random = createRandom(options.seed)
  const planned: Planned[] = atSetTimes(durationMs)
  for (let atMs = 0; ; ) {
    const load = atMs % WAVE_MS < WAVE_MS / 2 ? LOAD.bottom : LOAD.top
    atMs += (-Math.log(1 - random()) * 1000) / (load * rate)
    if (atMs >= durationMs) break
    planned.push({ atMs, do: random() < REPLAYED ? 'submit-twice' : 'submit', kind: pick(random) })
  }
  return planned.sort((one, other) => one.atMs - other.atMs)
}

const PIPELINE_EVERY_MS = 7_000

const atSetTimes = (durationMs: number): Planned[] => {
  const at = (share: number, action: Action): Planned => ({ atMs: share * durationMs, ...action })
  const pipelines = Array.from(
    { length: Math.max(2, Math.ceil(durationMs / PIPELINE_EVERY_MS)) },
    (_, n) => n,
  )
  return [
    ...pipelines.map((n, _, { length }) =>
      at((n + 0.1) / length, {
        do: 'submit-pipeline',
        pipeline: PIPELINES[n % PIPELINES.length] as Pipeline,
      }),
    ),
    ...[0, 0.3, 0.5, 0.7, 0.95].map((share) =>
      at(share, { do: 'submit', kind: RARE_KINDS['month-end-close'] }),
    ),
    ...[0.02, 0.4].flatMap((share) => FAILING.map((kind) => at(share, { do: 'submit', kind }))),
    ...[0.05, 0.45].map((share) =>
      at(share, { do: 'submit-and-cancel', kind: RARE_KINDS['rebuild-search-index'], afterMs: 1_500 }),
    ),
    at(0.04, { do: 'submit-twice', kind: first('charge-card') }),
    at(0.05, { do: 'submit-for-later', kind: first('clean-orders'), delaySeconds: 20 }),
    // Beyond the end of the demo: it is there to be seen waiting.
    at(0.1, { do: 'submit-for-later', kind: first('clean-orders'), delaySeconds: 1_800 }),
    ...(['main', 'branch', 'main', 'incomplete', 'main'] as const).map((push, n) =>
      at(0.1 + 0.15 * n, { do: 'deliver', push }),
    ),
  ]
}

const first = (name: string): Kind => KINDS.find((kind) => kind.name === name) as Kind

const FAILING = ['sync-legacy-ledger', 'verify-iban', 'fetch-thumbnail'].map(first)

const pick = (random: () => number): Kind => {
  let left = random() * KINDS.reduce((sum, { weight }) => sum + weight, 0)
  const found = KINDS.find(({ weight }) => {
    left -= weight
    return left < 0
  })
  return found ?? (KINDS[0] as Kind)
}
