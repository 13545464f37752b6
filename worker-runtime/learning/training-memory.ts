import type { Batch } from '../../functions/prediction/lstm/trainer.ts'

/** One execution as the network is taught: what it saw, what it should have said, and what its series had been through. */
export type Lesson = {
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
  /** Half of the windows end in the newest lessons, half anywhere. */
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
  let total = 0

  const add: TrainingMemory['add'] = (lesson) => {
    // The lesson itself: its state is known later.
    const entry: Entry = Object.assign(lesson, { number: total, previous: newestOf.get(lesson.series) })
    const replaced = ring[total % CAPACITY]
    if (replaced) forget(replaced)
    ring[total % CAPACITY] = entry
    newestOf.set(lesson.series, entry)
    total++
  }

  /** What has left the ring must not be kept alive by those after it. */
  const forget = (old: Entry): void => {
    old.previous = undefined
    old.x = NOTHING
    if (newestOf.get(old.series) === old) newestOf.delete(old.series)
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

  const pick = (random: () => number, among: number): Entry =>
    ring[(total - 1 - Math.floor(random() * among)) % CAPACITY] as Entry

  const batch: TrainingMemory['batch'] = (random) => {
    const { inputs: I, hidden: H } = shape
    const kept = Math.min(total, CAPACITY)
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
      const window = windowBack(pick(random, b % 2 === 0 ? Math.min(RECENT, kept) : kept))
      const { state } = window[0] as Entry
      if (state.length > 0) made.initialState.set(state, b * 4 * H)
      for (const [t, lesson] of window.entries()) {
        const row = t * WINDOWS + b
        made.inputs.set(lesson.x, row * I)
        made.targets[row] = lesson.target
        made.weights[row] = 0.5 ** ((total - lesson.number) / HALF_LIFE)
        made.censored[row] = lesson.censored ? 1 : 0
      }
    }
    return made
  }

  return {
    add,
    added: () => total,
    newest: (count) => {
      const from = Math.max(0, total - Math.min(count, CAPACITY))
      return Array.from({ length: total - from }, (_, n) => ring[(from + n) % CAPACITY] as Entry)
    },
    batch,
  }
}

const NOTHING = new Float32Array(0)
