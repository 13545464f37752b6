import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 10

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/** Waits until `condition` gives something truthy, and answers it. What it throws counts as not yet. */
export const waitFor = async <T>(
  what: string,
  condition: () => Promise<T> | T,
  timeoutMs = 20_000,
): Promise<Truthy<T>> => {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  for (;;) {
    try {
      last = await condition()
      if (last) return last as Truthy<T>
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline)
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}`, { cause: last })
    await delay(PAUSE_MS)
  }
}
