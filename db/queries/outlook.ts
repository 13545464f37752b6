import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE } from '../rules/lanes.ts'
import { HELD_BACK_SUMMARY } from './parking.ts'
import { BIG } from './reservations.ts'

/** What there is to do for the leader. */
export type Outlook = {
  /** Jobs whose time has come. */
  due: boolean
  /** Leases that were not renewed. */
  expired: boolean
  /** Series whose estimate has moved. */
  moved: boolean
  /** Jobs that may need a reservation, or reservations that may not be needed any more. */
  big: boolean
  /** Whether there are jobs that have to run alone, or workers that are still draining for them. */
  suspects: boolean
  /** What is paused or without a worker, as a text that changes when it does. Empty: nothing is. */
  held_back: string
}

/** One look for all duties: most of the time there is nothing to do, and to try each of them takes several times as long. */
export const lookOut = (): Query<Outlook> => ({
  name: 'look-out',
  text: `
    select
      exists (select from smartqueue.waiting_jobs where wake_at <= now()) as due,
      exists (select from smartqueue.leases where expires_at <= now()) as expired,
      exists (select from smartqueue.series where moved) as moved,
      exists (select from smartqueue.ready_jobs where ${BIG} and lane < ${FIRST_PARKED_LANE})
        or exists (select from smartqueue.reservations) as big,
      exists (select from smartqueue.ready_jobs where alone)
        or exists (select from smartqueue.workers where isolates and status = 'online') as suspects,
      ${HELD_BACK_SUMMARY.trim()} as held_back`,
  values: [],
})
