import { faultOfRowSecurity, inspectRowSecurity, WORKERS_ROLE } from '../db/queries/row-level-security.ts'
import type { Run } from '../db/query.ts'
import { UsageError } from './command.ts'

/** A worker does not start under a role that could see or do more than a worker must. Nor does who has the functions' role. */
export const requireRowSecurity = async (run: Run, role: string = WORKERS_ROLE): Promise<void> => {
  const [report] = await run(inspectRowSecurity(role))
  const fault = report ? faultOfRowSecurity(report, role) : 'The database did not tell its role.'
  if (fault) throw new UsageError(`DATABASE_URL: ${fault}`)
}
