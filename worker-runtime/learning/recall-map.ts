export type RecallMap<Value> = {
  has(key: string): boolean
  get(key: string): Value | undefined
  set(key: string, value: Value): void
  /** Forgets those that were used longest ago, beyond `most`. */
  trim(most: number): void
}

/** Values by key. What it does not have it recalls from elsewhere; what was used last stands last. */
export const createRecallMap = <Value>(recall: (key: string) => Value | undefined): RecallMap<Value> => {
  const kept = new Map<string, Value>()

  const set = (key: string, value: Value): void => {
    kept.delete(key)
    kept.set(key, value)
  }

  return {
    has: (key) => kept.has(key),
    get: (key) => {
      const value = kept.get(key) ?? recall(key)
      if (value !== undefined) set(key, value)
      return value
    },
    set,
    trim: (most) => {
      for (const key of kept.keys()) {
        if (kept.size <= most) return
        kept.delete(key)
      }
    },
  }
}
