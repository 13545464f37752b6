/** Notifies workers of ready jobs that no commit has announced. */
export type Announcer = {
  announce(types: Iterable<string>): Promise<void>
  /** Before a submission is sent. */
  mark(): number
  /** The submission has announced these types, and with them all jobs that were committed before the mark. */
  forget(types: Iterable<string>, mark: number): void
}

/** The minimum time between two notifications by submissions. */
const REST_MS = 5

/** After this time, the runtime must have ended the request that was to send the remembered types. */
const LOST_MS = 1_000

/**
 * NOTIFY holds a server-wide lock during the commit, so only one submission in 5 ms sends its own. The types of the
 * others are remembered for 5 ms. Those that no commit has announced by then are sent together in one statement.
 */
export const createAnnouncer = (
  send: (types: string[]) => Promise<unknown>,
  onError: (error: unknown) => void,
): Announcer => {
  /** By type, the number of the last announcement. */
  const remembered = new Map<string, number>()
  let announcements = 0
  let sinceMs = 0

  return {
    mark: () => announcements,
    forget: (types, mark) => {
      for (const type of types) if ((remembered.get(type) ?? 0) <= mark) remembered.delete(type)
    },
    announce: async (types) => {
      const isSomebodySending = remembered.size > 0 && Date.now() - sinceMs < LOST_MS
      announcements++
      for (const type of types) remembered.set(type, announcements)
      if (isSomebodySending) return
      sinceMs = Date.now()
      await rest()
      const left = [...remembered.keys()]
      remembered.clear()
      if (left.length > 0) await send(left).catch(onError)
    },
  }
}

const rest = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, REST_MS)
  })
