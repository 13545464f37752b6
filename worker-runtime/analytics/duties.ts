/**
 * What analytics read, as duties of the leader: events are added up, queues are looked at, and what the order was worth is
 * found out by replaying it. Nothing of it is in the statements that move jobs.
 */
import { setImmediate as breathe } from 'node:timers/promises'
import { sampleDepths } from '../../db/queries/analytics-depth.ts'
import { measureStretch, readCapacity, readStretch, storeGains } from '../../db/queries/analytics-gain.ts'
import { findUncounted, rollUp } from '../../db/queries/analytics-rollup.ts'
import { restartCursors } from '../../db/queries/event-cursors.ts'
import type { Run } from '../../db/query.ts'
import type { Duty } from '../duties.ts'
import type { Logger } from '../logger.ts'
import { weighOrder } from './scheduling-gain.ts'

export type AnalyticsDutyOptions = { run: Run; logger: Logger }

const SECOND = 1_000

/** Some 30 ms of work, whether they are few rows with many jobs or many with few. */
const PAGE = { groups: 300, jobs: 50_000 }

const SAMPLE_MS = 15 * SECOND

/** Rows of one series and statement each, and attempts, that are replayed at a time. */
const STRETCH = { rows: 10_000, jobs: 10_000 }
/** A queue that never runs empty is replayed in parts. */
const LONGEST_STRETCH_SECONDS = 3_600

export const createAnalyticsDuties = (options: AnalyticsDutyOptions): Duty[] => [
  countEvents(options),
  watchDepths(options),
  weighOrders(options),
]

const countEvents = ({ run, logger }: AnalyticsDutyOptions): Duty => {
  let lookedInTerm: string | undefined
  return {
    name: 'rollups',
    step: async (term) => {
      if (lookedInTerm !== term) {
        const [restarted] = await run(restartCursors(term, ['rollups', 'gains']))
        if (restarted) logger.warn('rollups begin at the present: the database came from another server')
        lookedInTerm = term
      }
      const [first] = await run(findUncounted())
      if (!first?.at) return SECOND
      const startedAtMs = performance.now()
      const [page] = await run(rollUp(term, PAGE))
      // At most half of the time: whoever works the queue off comes first.
      return page?.more ? performance.now() - startedAtMs : SECOND
    },
  }
}

const watchDepths = ({ run }: AnalyticsDutyOptions): Duty => {
  let pauseMs = SAMPLE_MS
  return {
    name: 'queue depths',
    step: async (term) => {
      const startedAtMs = performance.now()
      await run(sampleDepths(term, pauseMs / SECOND))
      // With a million queued jobs it takes a while.
      pauseMs = Math.max(SAMPLE_MS, 20 * (performance.now() - startedAtMs))
      return pauseMs
    },
  }
}

const weighOrders = ({ run }: AnalyticsDutyOptions): Duty => ({
  name: 'scheduling gain',
  step: async (term) => {
    const [stretch] = await run(measureStretch(STRETCH))
    if (!stretch?.next) return 30 * SECOND
    const isClosed = stretch.idle || stretch.more || (stretch.age_seconds ?? 0) > LONGEST_STRETCH_SECONDS
    if (!isClosed) return 5 * SECOND
    const attempts = await run(readStretch(STRETCH, stretch.next))
    const sinceMs = attempts.reduce((least, { ready_ms }) => Math.min(least, ready_ms), Infinity)
    const [capacity] = await run(readCapacity(Number.isFinite(sinceMs) ? sinceMs : 0))
    const gains = await weighOrder(attempts, capacity ?? { slots: [], running_ms: [] }, () => breathe())
    // What there is too much of is not made up for: the newest say more.
    await run(storeGains(term, stretch.start, stretch.more ? null : stretch.next, gains))
    return stretch.more ? 5 * SECOND : 30 * SECOND
  },
})
