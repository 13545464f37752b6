export type Sizes = {
  rounds: number
  /** Queued for a plain drain: far more than four workers fetch ahead. Of it and `measured` a contender gets its share. */
  drain: number
  /** How many are run of a queue that is longer than that. */
  measured: number
  /** A long queue: drained while it is long, and while an old snapshot is open. */
  long: number
  snapshotCapMs: number
  /** A very long queue, and as many finished jobs. */
  huge: number
  /** Each three times a round. */
  oneByOne: number
  concurrent: number
  inBatches: number
  pickups: number
  httpRequests: number
}

/** A quarter of an hour on 2 cores. Shorter drains say more about how fast a library's code is compiled than runs. */
export const FULL: Sizes = {
  rounds: 3,
  drain: 160_000,
  measured: 160_000,
  long: 200_000,
  snapshotCapMs: 12_000,
  huge: 1_000_000,
  oneByOne: 200,
  concurrent: 2_000,
  inBatches: 60_000,
  pickups: 200,
  httpRequests: 3_000,
}

/** Does it still run? A minute; the numbers say little. */
export const QUICK: Sizes = {
  rounds: 1,
  drain: 4_000,
  measured: 3_000,
  long: 6_000,
  snapshotCapMs: 1_000,
  huge: 10_000,
  oneByOne: 50,
  concurrent: 200,
  inBatches: 2_000,
  pickups: 20,
  httpRequests: 100,
}
