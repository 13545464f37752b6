import type { Run } from '../db/query.ts'
import type { LeaseKey } from '../db/queue/exchange.ts'
import { renewLeases } from '../db/queue/leases.ts'
import { LEASE_SECONDS, type LeaseBook } from './lease-book.ts'
import { createPoller } from './poller.ts'

const RENEW_MS = 10_000

export type Loss = 'lease_lost' | 'cancelled'

export type LeaseKeeper = {
  start(): void
  /** Some of the held jobs may have been cancelled: looks now. */
  checkCancelled(): void
  stop(): Promise<void>
}

/**
 * Renews all held leases with one statement. A lease is lost when the database says so, or when it could not
 * be asked for as long as a lease lives: by then the watchdog may have given the job to someone else.
 */
export const createLeaseKeeper = (options: {
  run: Run
  held: () => LeaseKey[]
  leases: Pick<LeaseBook, 'renewed' | 'livesUntilMs'>
  onLost: (key: LeaseKey, why: Loss) => void
  onError: (error: Error) => void
  now?: () => number
}): LeaseKeeper => {
  const now = options.now ?? (() => performance.now())
  let cancellations = 0

  const renew = async (): Promise<number> => {
    const held = options.held()
    if (held.length === 0) return RENEW_MS
    const why: Loss = cancellations > 0 ? 'cancelled' : 'lease_lost'
    cancellations = 0
    const askedAtMs = now()
    try {
      const tokens = [...new Set(held.map(({ token }) => token))]
      const renewed = await options.run(renewLeases(tokens, LEASE_SECONDS))
      options.leases.renewed(
        renewed.map(({ token }) => token),
        askedAtMs,
      )
      const kept = new Set(
        renewed.flatMap(({ token, job_ids }) => job_ids.map((job_id) => `${job_id} ${token}`)),
      )
      for (const key of held) if (!kept.has(`${key.job_id} ${key.token}`)) options.onLost(key, why)
      return RENEW_MS
    } catch (error) {
      options.onError(error as Error)
      for (const key of held) {
        if (now() >= options.leases.livesUntilMs(key.token)) options.onLost(key, 'lease_lost')
      }
      return 1_000
    }
  }

  const poller = createPoller({ step: renew, onError: options.onError })
  return {
    start: poller.start,
    checkCancelled: () => {
      cancellations++
      poller.wake()
    },
    stop: poller.stop,
  }
}
