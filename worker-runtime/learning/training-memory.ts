import type { Batch } from '../../functions/prediction/lstm/trainer.ts'

/** One execution as the network is taught: what it saw, what it should have said, and what its series had been through. */
export type Lesson = {
  org: string
  series: string
  /** How often the series had run when it was predicted: those of one vintage were predicted from the same state. */
  vintage: number
  x: Float32Array
  /** ln(runtime) − baseline. */
  target: number
  /** The runtime is only a lower bound: the attempt was ended by its timeout. */
  censored: boolean
  /** The state of the series' network before it. */
  state: Float32Array
}

export type TrainingMemory = {
  add(lesson: Lesson): void
  /** How many have been added, ever. */
  added(): number
  /** The newest, oldest of them first. */
  newest(count: number): Lesson[]
  /** The organisation of all that are kept. Null: there are several. */
  onlyOrg(): string | null
  /** The newest of each organisation, at most `count`. */
  newestByOrg(count: number): Lesson[][]
  /**
   * Half of the windows end in the newest lessons, half in those of an organisation drawn at random. No organisation has
   * more than its share of the weight, see `balanceWeights`.
   */
  batch(random: () => number): Batch
}

/** Executions that are kept: about as many as still count, see `HALF_LIFE`. */
const CAPACITY = 40_000
/** After so many executions one counts half as much. */
const HALF_LIFE = 40_000
/** Windows of the recent half end among these. */
const RECENT = 2_000
const STEPS = 16
const WINDOWS = 64

type Entry = Lesson & { number: number; previous: Entry | undefined }

/** Executions in order of their end; each knows the one before it of its series, so that a window is a walk back. */
export const createTrainingMemory = (shape: { inputs: number; hidden: number }): TrainingMemory => {
  const ring: Entry[] = []
  const newestOf = new Map<string, Entry>()
  const byOrg = new Map<string, Entry[]>()
  let total = 0

  const add: TrainingMemory['add'] = (lesson) => {
    // The lesson itself: its state is known later.
    const entry: Entry = Object.assign(lesson, { number: total, previous: newestOf.get(lesson.series) })
    const replaced = ring[total % CAPACITY]
    if (replaced) forget(replaced)
    ring[total % CAPACITY] = entry
    newestOf.set(lesson.series, entry)
    const ofOrg = byOrg.get(lesson.org)
    if (ofOrg) ofOrg.push(entry)
    else byOrg.set(lesson.org, [entry])
    total++
  }

  /** What has left the ring must not be kept alive by those after it. */
  const forget = (old: Entry): void => {
    old.previous = undefined
    old.x = NOTHING
    if (newestOf.get(old.series) === old) newestOf.delete(old.series)
    const ofOrg = byOrg.get(old.org)
    ofOrg?.shift()
    if (ofOrg?.length === 0) byOrg.delete(old.org)
  }

  const windowBack = (end: Entry): Entry[] => {
    const window = [end]
    for (
      let entry = end.previous;
      entry && entry.x !== NOTHING && window.length < STEPS;
      entry = entry.previous
    ) {
      window.unshift(entry)
    }
    return window
  }

  const pickRecent = (random: () => number): Entry =>
    ring[(total - 1 - Math.floor(random() * Math.min(total, RECENT))) % CAPACITY] as Entry

  const pickFrom = (random: () => number, orgs: readonly Entry[][]): Entry =>
    pickOne(random, orgs.length === 1 ? (orgs[0] as Entry[]) : pickOne(random, orgs))

  const batch: TrainingMemory['batch'] = (random) => {
    const { inputs: I, hidden: H } = shape
    const orgs = [...byOrg.values()]
    const owners: string[] = []
    const made = {
      steps: STEPS,
      size: WINDOWS,
      inputs: new Float32Array(STEPS * WINDOWS * I),
      targets: new Float32Array(STEPS * WINDOWS),
      weights: new Float32Array(STEPS * WINDOWS),
      censored: new Uint8Array(STEPS * WINDOWS),
      initialState: new Float32Array(WINDOWS * 4 * H),
    }
    for (let b = 0; b < WINDOWS; b++) {
      const window = windowBack(b % 2 === 0 ? pickRecent(random) : pickFrom(random, orgs))
      const { state, org } = window[0] as Entry
      owners.push(org)
      if (state.length > 0) made.initialState.set(state, b * 4 * H)
      for (const [t, lesson] of window.entries()) {
        const row = t * WINDOWS + b
        made.inputs.set(lesson.x, row * I)
        made.targets[row] = lesson.target
        made.weights[row] = 0.5 ** ((total - lesson.number) / HALF_LIFE)
        made.censored[row] = lesson.censored ? 1 : 0
      }
    }
    balanceWeights(made.weights, owners)
    return made
  }

  return {
    add,
    added: () => total,
    newest: (count) => {
      const from = Math.max(0, total - Math.min(count, CAPACITY))
      return Array.from({ length: total - from }, (_, n) => ring[(from + n) % CAPACITY] as Entry)
    },
    onlyOrg: () => (byOrg.size === 1 ? ([...byOrg.keys()][0] ?? null) : null),
    newestByOrg: (count) => [...byOrg.values()].map((ofOrg) => ofOrg.slice(-count)),
    batch,
  }
}

const NOTHING = new Float32Array(0)

const pickOne = <Value>(random: () => number, among: readonly Value[]): Value =>
  among[among.length - 1 - Math.floor(random() * among.length)] as Value

/** The largest share of a batch's weight that one organisation may have; with fewer than twenty, all have the same. */
const LARGEST_SHARE = 0.05

/** Column b of the weights belongs to `owners[b]`. What an organisation has beyond its share is taken off evenly. */
export const balanceWeights = (weights: Float32Array, owners: readonly string[]): void => {
  const sums = new Map<string, number>()
  weights.forEach((weight, row) => {
    const org = owners[row % owners.length] as string
    sums.set(org, (sums.get(org) ?? 0) + weight)
  })
  if (sums.size === 1) return
  const limit = limitOf([...sums.values()], Math.max(LARGEST_SHARE, 1 / sums.size))
  weights.forEach((weight, row) => {
    const sum = sums.get(owners[row % owners.length] as string) as number
    if (sum > limit) weights[row] = (weight * limit) / sum
  })
}

/** Where to cut values so that none of them is more than `share` of what is left of all. */
const limitOf = (values: readonly number[], share: number): number => {
  const falling = [...values].sort((a, b) => b - a)
  let rest = falling.reduce((sum, value) => sum + value, 0)
  for (const [cut, value] of falling.entries()) {
    // If the largest are cut, and the others are not: limit = share · (rest + cut · limit).
    const limit = (share * rest) / (1 - share * cut)
    if (limit >= value) return limit
    rest -= value
  }
  return falling.at(-1) ?? 0
}
