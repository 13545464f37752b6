export type Poller = {
  start(): void
  /** Runs the next step now, or once more if one is under way. */
  wake(): void
  /** Waits for a step that is under way; twice is safe. */
  stop(): Promise<void>
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

/** Runs `step` again and again. Each step answers the delay before the next; a failing one pauses, longer each time. */
export const createPoller = (options: {
  step: () => Promise<number>
  onError: (error: Error) => void
  longestPauseMs?: number
}): Poller => {
  const { longestPauseMs = LONGEST_PAUSE_MS } = options
  let timer: NodeJS.Timeout | undefined
  let immediate: NodeJS.Immediate | undefined
  let current: Promise<void> | undefined
  let stopped = true
  let woken = false
  let failures = 0

  const schedule = (delayMs: number): void => {
    if (stopped) return
    // A timer takes at least a millisecond.
    if (delayMs === 0) immediate = setImmediate(begin)
    else timer = setTimeout(begin, delayMs)
  }

  const cancel = (): void => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }

  const begin = (): void => {
    woken = false
    current = runStep().then((delayMs) => {
      current = undefined
      schedule(woken && failures === 0 ? 0 : delayMs)
    })
  }

  const runStep = async (): Promise<number> => {
    try {
      const delayMs = await options.step()
      failures = 0
      return delayMs
    } catch (error) {
      options.onError(error as Error)
      return Math.min(FIRST_PAUSE_MS * 2 ** failures++, longestPauseMs)
    }
  }

  return {
    start: () => {
      stopped = false
      schedule(0)
    },
    wake: () => {
      woken = true
      if (stopped || current || failures > 0) return
      cancel()
      begin()
    },
    stop: async () => {
      stopped = true
      cancel()
      await current
    },
  }
}
