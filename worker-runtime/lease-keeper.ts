import { type LeaseKey, renewLeases } from '../db/queries/leases.ts'
import type { Run } from '../db/query.ts'
import { createPoller } from './poller.ts'

export const LEASE_SECONDS = 30
const RENEW_MS = 10_000

export type LeaseKeeper = {
  start(): void
  stop(): Promise<void>
}

/**
 * Renews all held leases with one statement. A lease is lost when the database says so, or when it could not
 * be asked for as long as a lease lives: by then the watchdog may have given the job to someone else.
 */
export const createLeaseKeeper = (options: {
  run: Run
  held: () => (LeaseKey & { claimedAtMs: number })[]
  onLost: (token: string) => void
  onError: (error: Error) => void
  now?: () => number
}): LeaseKeeper => {
  const now = options.now ?? (() => performance.now())
  let renewedAtMs = Number.NEGATIVE_INFINITY

  const renew = async (): Promise<number> => {
    const held = options.held()
    if (held.length === 0) return RENEW_MS
    const askedAtMs = now()
    try {
      const kept = new Set((await options.run(renewLeases(held, LEASE_SECONDS))).map((row) => row.token))
      renewedAtMs = askedAtMs
      for (const { token } of held) if (!kept.has(token)) options.onLost(token)
      return RENEW_MS
    } catch (error) {
      options.onError(error as Error)
      for (const { token, claimedAtMs } of held) {
        const safeUntilMs = Math.max(renewedAtMs, claimedAtMs) + LEASE_SECONDS * 1000
        if (now() >= safeUntilMs) options.onLost(token)
      }
      return 1_000
    }
  }

  const poller = createPoller({ step: renew, onError: options.onError })
  return { start: poller.start, stop: poller.stop }
}
