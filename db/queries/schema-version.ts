import type { Query } from '../query.ts'

/** The newest migration that this code needs. A test keeps it equal to the newest in `db/migrations/`. */
export const SCHEMA_VERSION = 26

/** The SQLSTATE that `schemaVersion` fails with on a database that was never migrated. */
export const UNDEFINED_TABLE = '42P01'

export const schemaVersion = (): Query<{ version: number | null }> => ({
  name: 'schema-version',
  text: `
    select max(version) as version
    from schema_migrations`,
  values: [],
})
