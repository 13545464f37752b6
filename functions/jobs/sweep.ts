import type { JobFilter } from '../../db/queries/job-filter.ts'
import { countJobs, listJobIds } from '../../db/queries/job-list.ts'
import type { Run } from '../../db/query.ts'
import { DatabaseUnavailable } from '../database-errors.ts'
import { queueFull } from './quota.ts'

/** `done`: all that match were looked at. If not, the same request goes on. */
export type Sweep = { matched: number; changed: number; done: boolean }

const NOTHING = { changed: 0, full: false }

/** Jobs that one statement changes: it holds their rows for a fraction of a second. */
const STEP = 1000
/** Jobs and time that one request may take: an answer must come before a client gives up. */
export const MAX_SWEEP = 20_000
const MAX_MS = 10_000

/** How many of the ids were changed; some may have moved on since they were found. `full`: there is no room for more. */
export type Change = (ids: string[]) => Promise<{ changed: number; full: boolean }>

/**
 * Changes all jobs that match a filter, newest first, a bounded number per statement. A full queue or an
 * unavailable database ends it early, with an error only if nothing was changed.
 */
export const sweepJobs = async (
  run: Run,
  scope: { orgId: string; filter: JobFilter; limit?: number },
  change: Change,
): Promise<Sweep> => {
  const { limit = MAX_SWEEP, ...search } = scope
  const stopAt = Date.now() + MAX_MS
  const sweep = { matched: 0, changed: 0, done: false }
  let before: string | null = null
  const takeStep = async (): Promise<{ full: boolean }> => {
    const step = Math.min(STEP, limit - sweep.matched)
    // One more than is changed now: the one that says whether there are more.
    const rows = await run(listJobIds({ ...search, before, limit: step + 1 }))
    const ids = rows.slice(0, step).map(({ id }) => id)
    const { changed, full } = ids.length > 0 ? await change(ids) : NOTHING
    sweep.changed += changed
    sweep.matched += ids.length
    sweep.done = !full && rows.length <= step
    before = ids.at(-1) ?? before
    return { full }
  }
  while (!sweep.done && sweep.matched < limit && Date.now() < stopAt) {
    try {
      const { full } = await takeStep()
      if (full && sweep.changed === 0) throw queueFull()
      if (full) break
    } catch (error) {
      // Earlier steps are committed; the client continues with its next request.
      if (sweep.changed > 0 && error instanceof DatabaseUnavailable && error.rolledBack) break
      throw error
    }
  }
  return sweep
}

const MAX_COUNTED = 100_000

/** What a sweep would meet. `done`: they were all counted. */
export const countSweep = async (run: Run, orgId: string, filter: JobFilter): Promise<Sweep> => {
  const [count] = await run(countJobs(orgId, filter, MAX_COUNTED))
  const matched = count?.matched ?? 0
  return { matched, changed: 0, done: matched < MAX_COUNTED }
}
