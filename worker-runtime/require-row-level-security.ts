import { findRowSecurityFault, WORKERS_ROLE } from '../db/queries/row-level-security.ts'
import type { Run } from '../db/query.ts'
import { UsageError } from './command.ts'

/** A worker does not start under a role that could see or do more than a worker must. Nor does who has the functions' role. */
export const requireRowSecurity = async (run: Run, role: string = WORKERS_ROLE): Promise<void> => {
  const [row] = await run(findRowSecurityFault(role))
  if (row?.fault !== null)
    throw new UsageError(`DATABASE_URL: ${row?.fault ?? 'The database did not tell its role.'}`)
}
