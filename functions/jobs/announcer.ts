/** Notifies workers of ready jobs that no commit has announced. */
export type Announcer = {
  announce(types: Iterable<string>): Promise<void>
  /** Before a submission is sent. */
  mark(): number
  /** The submission has announced these types, and with them all jobs that were committed before the mark. */
  forget(types: Iterable<string>, mark: number): void
}

/**
 * At most one commit in 5 ms notifies the workers. A rest is longer, so that while jobs keep coming, the next such commit
 * makes a separate notification unnecessary.
 */
const REST_MS = 8

/** After this time, the runtime must have ended the request that was to send the remembered types. */
const LOST_MS = 1_000

/**
 * NOTIFY holds a server-wide lock during the commit, so only one submission in 5 ms sends its own. The types of the
 * others are remembered for a moment. If no commit has announced them by then, they are sent together in one statement.
 */
export const createAnnouncer = (
  send: (types: string[]) => Promise<unknown>,
  onError: (error: unknown) => void,
): Announcer => {
  /** By type, the numbers of the first and the last announcement. */
  const remembered = new Map<string, { first: number; last: number }>()
  let announcements = 0
  /** When the current rest began; -Infinity if nobody is resting. */
  let restingSinceMs = Number.NEGATIVE_INFINITY

  const remember = (types: Iterable<string>): void => {
    announcements++
    for (const type of types) {
      const { first } = remembered.get(type) ?? { first: announcements }
      remembered.set(type, { first, last: announcements })
    }
  }

  /**
   * Rests, and rests again while commits have announced every type remembered before the rest and new types have come
   * during it. Starts no new rest after LOST_MS.
   */
  const restUntilDue = async (): Promise<void> => {
    const giveUpAt = Date.now() + LOST_MS
    let before: number
    do {
      restingSinceMs = Date.now()
      before = announcements
      await rest()
    } while (isYounger(before) && restingSinceMs < giveUpAt)
    restingSinceMs = Number.NEGATIVE_INFINITY
  }

  const isYounger = (than: number): boolean =>
    remembered.size > 0 && [...remembered.values()].every(({ first }) => first > than)

  return {
    mark: () => announcements,
    forget: (types, mark) => {
      for (const type of types) if ((remembered.get(type)?.last ?? 0) <= mark) remembered.delete(type)
    },
    announce: async (types) => {
      remember(types)
      if (Date.now() - restingSinceMs < LOST_MS) return
      await restUntilDue()
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
