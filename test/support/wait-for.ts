import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 10

/** Waits until `condition` gives something truthy, and answers it. What it throws counts as not yet. */
export const waitFor = async <T>(
  what: string,
  condition: () => Promise<T> | T,
  timeoutMs = 20_000,
): Promise<NonNullable<T>> => {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  for (;;) {
    try {
      last = await condition()
      if (last) return last as NonNullable<T>
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline)
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}`, { cause: last })
    await delay(PAUSE_MS)
  }
}
