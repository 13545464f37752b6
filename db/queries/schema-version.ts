import type { Query } from '../query.ts'

/** The newest migration that this code needs. A test keeps it equal to the newest in `db/migrations/`. */
export const SCHEMA_VERSION = 15

/** The SQLSTATE that `schemaVersion` fails with on a database that was never migrated. */
export const UNDEFINED_TABLE = '42P01'

export const schemaVersion = (): Query<{ version: number | null }> => ({
  name: 'schema-version',
  text: `
    select max(version) as version
    from smartqueue.schema_migrations`,
  values: [],
})

/**
 * Whether the schema exists and, if not usable, why. Unreleased versions had their tables in the schema public; no
 * other tool has both of these columns.
 */
export const inspectSchema = (): Query<{ found: boolean; refusal: string | null }> => ({
  name: 'inspect-schema',
  text: `
    select
      schema.oid is not null as found,
      case
        when schema.oid is null and (
          select count(*)
          from pg_attribute a
          where (a.attrelid, a.attname) in (
            (to_regclass('public.schema_migrations'), 'checksum'),
            (to_regclass('public.job_types'), 'payload_schema')
          )
        ) = 2 then
          'This database was created by an unreleased version of SmartQueue and cannot be upgraded. '
            'Start with an empty database; locally, delete the folder .smartqueue.'
        when schema.oid is null and not has_database_privilege(current_database(), 'create') then
          format(
            'The login %1$I may not create the schema smartqueue. Run as the owner of the database: '
              'grant create on database %2$I to %1$I',
            current_user, current_database()
          )
        when not pg_has_role(schema.nspowner, 'usage') then
          format(
            'The schema smartqueue belongs to %2$I, but SmartQueue must own it. Run as a superuser: '
              'alter schema smartqueue owner to %1$I',
            current_user, pg_get_userbyid(schema.nspowner)
          )
      end as refusal
    from (values ('smartqueue')) as wanted (name)
    left join pg_namespace schema on schema.nspname = wanted.name`,
  values: [],
})
