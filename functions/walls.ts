import { FUNCTIONS_ROLE, faultOfWalls, inspectWalls } from '../db/queries/walls.ts'
import type { Query, Run } from '../db/query.ts'
import type { Database } from './database.ts'

/** The database role could see across organisations. Nothing is asked of the database until it cannot. */
export class WallsDown extends Error {
  constructor(fault: string) {
    super(fault)
    this.name = 'WallsDown'
  }
}

/** A role that was changed is noticed by isolates that start later, and by this one after a failure. */
export const guardWalls = (database: Database): Database => {
  let inspected: Promise<void> | undefined

  const inspect = async (): Promise<void> => {
    const [report] = await database.run(inspectWalls(FUNCTIONS_ROLE))
    const fault = report ? faultOfWalls(report, FUNCTIONS_ROLE) : 'The database did not tell its role.'
    if (fault) throw new WallsDown(fault)
  }

  const guarded =
    (run: Run): Run =>
    async <Row>(query: Query<Row>) => {
      inspected ??= inspect().catch((error: unknown) => {
        inspected = undefined
        throw error
      })
      await inspected
      return run(query)
    }

  return {
    run: guarded(database.run),
    after: (...entries) => guarded(database.after(...entries)),
  }
}
