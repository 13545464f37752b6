import { SCHEMA_VERSION, schemaVersion, UNDEFINED_TABLE } from '../db/queries/schema-version.ts'
import type { Run } from '../db/query.ts'
import { UsageError } from './command.ts'

/** A worker of a newer release must not touch an older schema. */
export const requireCurrentSchema = async (run: Run): Promise<void> => {
  const [schema] = await run(schemaVersion()).catch((error: { code?: string }) => {
    if (error.code === UNDEFINED_TABLE) return []
    throw error
  })
  const version = schema?.version ?? 0
  if (version >= SCHEMA_VERSION) return
  throw new UsageError(
    `The schema is at version ${version}, ${SCHEMA_VERSION} is needed. Run npm run migrate.`,
  )
}
