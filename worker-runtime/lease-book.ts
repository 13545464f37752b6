/** How long a lease is valid after its claim and after each renewal. */
export const LEASE_SECONDS = 30

type Lease = {
  /** How many of its jobs are held. */
  held: number
  /** The outcomes of all that are not held any more are stored. */
  whole: boolean
  livesUntilMs: number
}

/** How a job left its lease: with its outcome stored, or for others to find. */
export type Departure = 'recorded' | 'abandoned'

/** What a worker knows about the leases of its jobs, by their tokens. */
export type LeaseBook = {
  /** `sentAtMs` is when the claim was sent, the earliest time at which the lease can have started. */
  open(token: string, jobs: number, sentAtMs: number): void
  /** Records that the database renewed these leases with a statement sent at `sentAtMs`. */
  renewed(tokens: readonly string[], sentAtMs: number): void
  /**
   * Until then no other worker can have got the jobs of this lease, whether or not the database is reachable.
   */
  livesUntilMs(token: string): number
  leave(token: string, how: Departure): void
  /** Of jobs that are ending, a token for each: the leases that name no others but these and completed ones. */
  closedBy(tokens: readonly string[]): string[]
}

export const createLeaseBook = (): LeaseBook => {
  const leases = new Map<string, Lease>()

  const leave = (token: string, how: Departure): void => {
    const lease = leases.get(token)
    if (!lease) return
    // Whoever closed it now would lose the job for good. It ends with the watchdog instead, if nobody is left.
    if (how === 'abandoned') lease.whole = false
    if (--lease.held === 0) leases.delete(token)
  }

  const closedBy = (tokens: readonly string[]): string[] => {
    const ending = new Map<string, number>()
    for (const token of tokens) ending.set(token, (ending.get(token) ?? 0) + 1)
    const isClosed = ([token, count]: [string, number]): boolean => {
      const lease = leases.get(token)
      return lease?.whole === true && lease.held === count
    }
    return [...ending].filter(isClosed).map(([token]) => token)
  }

  return {
    open: (token, jobs, sentAtMs) => {
      leases.set(token, { held: jobs, whole: true, livesUntilMs: endOfLease(sentAtMs) })
    },
    renewed: (tokens, sentAtMs) => {
      for (const token of tokens) {
        const lease = leases.get(token)
        if (lease) lease.livesUntilMs = Math.max(lease.livesUntilMs, endOfLease(sentAtMs))
      }
    },
    livesUntilMs: (token) => leases.get(token)?.livesUntilMs ?? Number.NEGATIVE_INFINITY,
    leave,
    closedBy,
  }
}

const endOfLease = (beganAtMs: number): number => beganAtMs + LEASE_SECONDS * 1000
