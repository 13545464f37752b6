import type { Duty } from './duties.ts'
import type { Leadership } from './leadership.ts'
import { createPoller, type Poller } from './poller.ts'

export type Leader = {
  start(): void
  /** The term, while this worker leads. */
  term(): string | undefined
  stop(): Promise<void>
}

/** How soon a worker that begins to lead takes up its duties. */
const STANDBY_MS = 200

/** Does the duties of the leader while this worker leads, each in a rhythm of its own. */
export const createLeader = (options: {
  leadership: Leadership
  duties: readonly Duty[]
  onError: (duty: string, error: Error) => void
}): Leader => {
  const pollers = options.duties.map((duty): Poller => {
    const step = async (): Promise<number> => {
      const term = options.leadership.term()
      if (term !== undefined) return duty.step(term)
      await duty.rest?.()
      return STANDBY_MS
    }
    return createPoller({ step, onError: (error) => options.onError(duty.name, error) })
  })
  return {
    start: () => {
      options.leadership.start()
      for (const poller of pollers) poller.start()
    },
    term: options.leadership.term,
    stop: async () => {
      await Promise.all(pollers.map((poller) => poller.stop()))
      await Promise.all(options.duties.map((duty) => duty.rest?.()))
      await options.leadership.stop()
    },
  }
}
