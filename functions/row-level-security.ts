import { FUNCTIONS_ROLE, findRowSecurityFault } from '../db/queries/row-level-security.ts'
import type { Query, Run } from '../db/query.ts'
import type { Database } from './database.ts'

/** The database role could see across organisations. Nothing is asked of the database until it cannot. */
export class RowSecurityBroken extends Error {
  constructor(fault: string) {
    super(fault)
    this.name = 'RowSecurityBroken'
  }
}

/**
 * Looks once in the life of an isolate. What is kept is a flag and not the promise: on workerd that belongs to the request
 * that asked, and would never be settled for the others if its client hung up.
 */
export const guardRowSecurity = (database: Database): Database => {
  let isInspected = false

  const inspect = async (): Promise<void> => {
    const [row] = await database.run(findRowSecurityFault(FUNCTIONS_ROLE))
    if (row?.fault !== null) throw new RowSecurityBroken(row?.fault ?? 'The database did not tell its role.')
    isInspected = true
  }

  const guarded =
    (run: Run): Run =>
    async <Row>(query: Query<Row>) => {
      if (!isInspected) await inspect()
      return run(query)
    }

  return {
    run: guarded(database.run),
    after: (...entries) => guarded(database.after(...entries)),
    transaction: async (queries) => {
      if (!isInspected) await inspect()
      return database.transaction(queries)
    },
    wasDiskFull: database.wasDiskFull,
  }
}
