import type { Run } from '../../db/query.ts'
import { findJobs, type JobFilter } from '../../db/queue/find-jobs.ts'
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
    const { ids, next_id } = await findPage(run, search, before, Math.min(STEP, limit - sweep.matched))
    const { changed, full } = ids.length > 0 ? await change(ids) : NOTHING
    sweep.changed += changed
    sweep.matched += ids.length
    sweep.done = !full && next_id === null
    before = next_id
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
const COUNT_STEP = 20_000

/** What a sweep would meet. `done`: they were all counted. */
export const countSweep = async (run: Run, orgId: string, filter: JobFilter): Promise<Sweep> => {
  const stopAt = Date.now() + MAX_MS
  let matched = 0
  let before: string | null = null
  do {
    const { ids, next_id } = await findPage(run, { orgId, filter }, before, COUNT_STEP)
    matched += ids.length
    before = next_id
  } while (before !== null && matched < MAX_COUNTED && Date.now() < stopAt)
  return { matched, changed: 0, done: before === null }
}

const findPage = async (
  run: Run,
  search: { orgId: string; filter: JobFilter },
  before: string | null,
  limit: number,
): Promise<{ ids: string[]; next_id: string | null }> => {
  const [page] = await run(findJobs({ ...search, before, limit }))
  return page ?? { ids: [], next_id: null }
}
