export type Slots = ReturnType<typeof createSlots>

/** When each slot becomes free, soonest first, in milliseconds from now. */
export const createSlots = (slots: number, runningRemainingMs: readonly number[]) => {
  const busy = [...runningRemainingMs].sort((a, b) => a - b).slice(0, slots)
  const free = new Float64Array(slots)
  free.set(busy, slots - busy.length)

  return {
    soonest: (): number => free[0] ?? Number.POSITIVE_INFINITY,
    /** One job, into the slot that is free first. */
    place: (ms: number): void => {
      const end = (free[0] ?? 0) + ms
      let n = 1
      while (n < slots && (free[n] as number) < end) n++
      free.copyWithin(0, 1, n)
      free[n - 1] = end
    },
    /** Much work: it fills the slots to a common level. */
    pour: (ms: number): void => {
      let level = free[0] ?? 0
      let rest = ms
      let n = 1
      for (; n < slots; n++) {
        const step = ((free[n] as number) - level) * n
        if (rest < step) break
        rest -= step
        level = free[n] as number
      }
      free.fill(level + rest / n, 0, n)
    },
    /** The time of all slots that is free until then. */
    idleUntil: (ms: number): number => free.reduce((sum, at) => sum + Math.max(0, ms - at), 0),
    /** What is left then of all that runs. */
    busyAfter: (ms: number): number[] => [...free].flatMap((at) => (at > ms ? at - ms : [])),
  }
}
