/** Tells workers which types have jobs. */
export type Announcer = { announce(types: readonly string[]): Promise<void> }

/** On workerd, work that outlives its request ends after 30 s: long before, someone else must have taken over. */
const LOOP_MS = 5_000

/** Between two notifications. */
const REST_MS = 5

/**
 * One notification is on its way at a time; what becomes ready meanwhile, or in the moment after it, is remembered and
 * goes in the next. NOTIFY takes a lock of the whole server at commit, and a worker that was just told is looking still.
 */
export const createAnnouncer = (
  send: (types: string[]) => Promise<unknown>,
  onError: (error: unknown) => void,
): Announcer => {
  const remembered = new Set<string>()
  let sending = false

  return {
    announce: async (types) => {
      for (const type of types) remembered.add(type)
      if (sending) return
      sending = true
      const stopAt = Date.now() + LOOP_MS
      for (let last = false; remembered.size > 0 && !last; ) {
        const now = [...remembered]
        remembered.clear()
        last = Date.now() > stopAt
        // Before the last one: whoever comes while it is on its way starts a loop of their own.
        if (last) sending = false
        await send(now).catch(onError)
        if (!last) await rest()
        if (!last && remembered.size === 0) sending = false
      }
    },
  }
}

const rest = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, REST_MS)
  })
