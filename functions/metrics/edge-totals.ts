import { addEdgeTotals, type EdgeTotal } from '../../db/queries/metrics.ts'
import type { Run } from '../../db/query.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'

/** What only the functions see, and the labels that it comes with. */
export const DUPLICATES = 'duplicates'
export const DELIVERIES = 'webhook_deliveries'
export const DELIVERY_OUTCOMES = ['accepted', 'duplicate', 'filtered', 'rejected', 'quarantined'] as const

export type EdgeTotals = {
  /** Counts now, and writes soon: nobody waits for it. */
  duplicates(jobs: number, hold: Hold): void
  delivery(outcome: (typeof DELIVERY_OUTCOMES)[number], hold: Hold): void
}

/** What is counted within this time is written together. */
const COLLECT_MS = 1_000
/** The request that was to write may be gone: then the next one does. */
const OVERDUE_MS = 5_000

const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, COLLECT_MS))

/** Adds up what an isolate has counted, in the background of the requests that have something to count. */
export const createEdgeTotals = (run: Run, now: () => number = Date.now, pause = rest): EdgeTotals => {
  const pending = new Map<string, EdgeTotal>()
  let promisedAt = Number.NEGATIVE_INFINITY

  const add = ({ name, label, total }: EdgeTotal): void => {
    const known = pending.get(`${name} ${label}`)
    if (known) known.total += total
    else pending.set(`${name} ${label}`, { name, label, total })
  }

  const write = async (): Promise<void> => {
    await pause()
    promisedAt = Number.NEGATIVE_INFINITY
    const totals = [...pending.values()]
    pending.clear()
    if (totals.length === 0) return
    try {
      await run(addEdgeTotals(totals))
    } catch (error) {
      // With whatever comes next. One that was committed although no answer came counts twice: better than not at all.
      totals.forEach(add)
      logFailure(error)
    }
  }

  const count = (total: EdgeTotal, hold: Hold): void => {
    add(total)
    if (now() - promisedAt < OVERDUE_MS) return
    promisedAt = now()
    hold(write())
  }

  return {
    duplicates: (jobs, hold) => {
      if (jobs > 0) count({ name: DUPLICATES, label: '', total: jobs }, hold)
    },
    delivery: (outcome, hold) => count({ name: DELIVERIES, label: outcome, total: 1 }, hold),
  }
}
