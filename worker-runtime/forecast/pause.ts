import { setTimeout as delay } from 'node:timers/promises'
import type { Pause } from './training.ts'

/** The worker leads no more: training is left as it is. */
export class Interrupted extends Error {
  override name = 'Interrupted'
}

/** Rests as long as was worked since the last time, so that training takes half of a core at most. */
export const createPause = (signal: AbortSignal): Pause => {
  let restedAtMs = performance.now()
  return async () => {
    await delay(Math.min(performance.now() - restedAtMs, LONGEST_MS))
    if (signal.aborted) throw new Interrupted('The worker leads no more')
    restedAtMs = performance.now()
  }
}

/** What was done before training began is no reason to wait. */
const LONGEST_MS = 100
