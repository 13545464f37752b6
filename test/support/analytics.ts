import { rollUp } from '../../db/queries/analytics-rollup.ts'
import type { Run } from '../../db/query.ts'
import type { TestDatabase } from './database.ts'
import { waitFor } from './wait-for.ts'

const PAGE = { groups: 300, jobs: 50_000 }

/** Rolls up until everything is counted: transactions elsewhere on the server hold the horizon back for a moment. */
export const rollUpAll = async (
  run: Run,
  sql: TestDatabase['sql'],
  term: string,
  limits = PAGE,
): Promise<void> => {
  await waitFor('all events to be counted', async () => {
    await run(rollUp(term, limits))
    const left = await sql(
      `select from job_event_groups g, event_cursors c where c.reader = 'rollups' and (g.xid, g.id) > (c.xid, c.id) limit 1`,
    )
    return left.length === 0
  })
}
