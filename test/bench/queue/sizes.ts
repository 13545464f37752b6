export type Sizes = {
  rounds: number
  /** Run in a drain, of which a contender gets its share: far more than four workers fetch ahead. */
  drain: number
  /** A long queue: drained while it is long, and while an old snapshot is open. */
  long: number
  snapshotCapMs: number
  /** A very long queue, and as many finished jobs. */
  huge: number
  /** How often a drain of those and a plain one take turns. */
  turns: number
  /** Each three times a round. */
  oneByOne: number
  concurrent: number
  inBatches: number
  pickups: number
  /** Before those. */
  warmUps: number
}

/** Half an hour on 2 cores. Shorter drains say more about how fast a library's code is compiled than runs. */
export const FULL: Sizes = {
  rounds: 3,
  drain: 160_000,
  long: 200_000,
  snapshotCapMs: 12_000,
  huge: 1_000_000,
  turns: 3,
  oneByOne: 600,
  concurrent: 4_000,
  inBatches: 60_000,
  pickups: 400,
  warmUps: 4_000,
}

/** Does it still run? A minute; the numbers say little. */
export const QUICK: Sizes = {
  rounds: 1,
  drain: 4_000,
  long: 6_000,
  snapshotCapMs: 1_000,
  huge: 10_000,
  turns: 1,
  oneByOne: 50,
  concurrent: 200,
  inBatches: 2_000,
  pickups: 20,
  warmUps: 50,
}
