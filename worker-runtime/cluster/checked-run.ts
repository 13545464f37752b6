import { FUNCTIONS_ROLE } from '../../db/queries/row-level-security.ts'
import type { Run } from '../../db/query.ts'
import { requireCurrentSchema } from '../require-current-schema.ts'
import { requireRowSecurity } from '../require-row-level-security.ts'

export type CheckedRun = {
  readonly run: Run
  /** The database has answered once, and was as it must be. */
  isChecked(): boolean
}

/**
 * Runs statements once the schema is current and the role is one of the functions, which see no organisation's data unasked.
 * Until then each fails with what is wrong. Nothing ends for it: a database that is away comes back, and a migration ends.
 */
export const createCheckedRun = (run: Run): CheckedRun => {
  let checked = false
  let checking: Promise<void> | undefined

  const check = async (): Promise<void> => {
    await requireCurrentSchema(run)
    await requireRowSecurity(run, FUNCTIONS_ROLE)
    checked = true
  }

  return {
    run: async (query) => {
      if (!checked) {
        checking ??= check().finally(() => {
          checking = undefined
        })
        await checking
      }
      return run(query)
    },
    isChecked: () => checked,
  }
}
