import { faultOfWalls, inspectWalls, WORKERS_ROLE } from '../db/queries/walls.ts'
import type { Run } from '../db/query.ts'
import { UsageError } from './command.ts'

/** A worker does not start under a role that could see or do more than a worker must. Nor does who has the functions' role. */
export const requireWalls = async (run: Run, role: string = WORKERS_ROLE): Promise<void> => {
  const [report] = await run(inspectWalls(role))
  const fault = report ? faultOfWalls(report, role) : 'The database did not tell its role.'
  if (fault) throw new UsageError(`DATABASE_URL: ${fault}`)
}
