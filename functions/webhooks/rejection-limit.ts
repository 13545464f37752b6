/** Sources of which the journal has as many rejections of this minute as it takes: for a moment the database is not asked. */
export type RejectionLimit = {
  isReached(sourceId: string): boolean
  reach(sourceId: string): void
}

/** As old as what is known of such a source may be: nothing else tells that it has changed. */
export const REST_MS = 5_000

export const createRejectionLimit = (now: () => number = Date.now): RejectionLimit => {
  const reachedAt = new Map<string, number>()

  return {
    isReached: (sourceId) => {
      const at = reachedAt.get(sourceId)
      if (at === undefined) return false
      if (now() - at <= REST_MS) return true
      reachedAt.delete(sourceId)
      return false
    },
    reach: (sourceId) => {
      reachedAt.set(sourceId, now())
    },
  }
}
