import type { Query } from '../query.ts'

/** The groups that the two runtimes' logins are members of. */
export const FUNCTIONS_ROLE = 'smartqueue_functions'
export const WORKERS_ROLE = 'smartqueue_workers'

export type RowSecurityReport = {
  role: string
  /** A role without row-level security that this one is, or can become. */
  bypasses_as: string | null
  /** It owns a table with row-level security. */
  owns: string | null
  /** A table with an organisation and without row-level security, or not forced upon its owner. */
  open_table: string | null
  is_member: boolean
  /** It has the rights of the other runtime, too. */
  is_other: boolean
  /** It may create temporary tables, which take precedence over ours unless a search path lists pg_temp. */
  may_shadow: boolean
  /** It may create tables and functions in our schema. */
  may_create: boolean
  /** Timeouts that are set neither on the role nor in this session. */
  without_timeouts: string[]
}

/** What the role of this session could do about the row-level security between organisations. */
export const inspectRowSecurity = (expected: string): Query<RowSecurityReport> => ({
  name: 'inspect-row-security',
  text: `
    select
      current_user::text as role,
      (
        select rolname::text
        from pg_roles
        where (rolsuper or rolbypassrls)
          and pg_has_role(session_user, oid, 'member')
        order by rolname <> session_user, rolname
        limit 1
      ) as bypasses_as,
      (
        select c.relname::text
        from pg_class c
        where c.relnamespace = to_regnamespace('smartqueue')
          and c.relrowsecurity
          and pg_has_role(session_user, c.relowner, 'member')
        order by c.relname
        limit 1
      ) as owns,
      (
        select c.relname::text
        from pg_class c
        where c.relnamespace = to_regnamespace('smartqueue')
          and c.relkind = 'r'
          and not (c.relrowsecurity and c.relforcerowsecurity)
          and exists (
            select
            from pg_attribute a
            where a.attrelid = c.oid
              and a.attname in ('org_id', 'org_ids')
              and not a.attisdropped
          )
        order by c.relname
        limit 1
      ) as open_table,
      pg_has_role(session_user, to_regrole($1::text), 'member') is true as is_member,
      pg_has_role(session_user, to_regrole($2::text), 'member') is true as is_other,
      has_database_privilege(session_user, current_database(), 'temporary') as may_shadow,
      coalesce(has_schema_privilege(session_user, to_regnamespace('smartqueue'), 'create'), false) as may_create,
      array(
        select s.name
        from pg_settings s
        where s.name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')
          and s.setting = '0'
          -- A pooler's session may be older than the role's setting.
          and not exists (
            select
            from pg_db_role_setting stored
            join pg_roles r on r.oid = stored.setrole and r.rolname = session_user
            cross join unnest(stored.setconfig) as entry
            where stored.setdatabase in (0, (select oid from pg_database where datname = current_database()))
              and starts_with(entry, s.name || '=')
              and entry <> s.name || '=0'
          )
        order by s.name
      ) as without_timeouts`,
  values: [expected, expected === FUNCTIONS_ROLE ? WORKERS_ROLE : FUNCTIONS_ROLE],
})

/** Why a runtime must not start with this role; nothing if it may. */
export const faultOfRowSecurity = (report: RowSecurityReport, expected: string): string | undefined => {
  const { role, bypasses_as, owns, open_table, is_member, is_other } = report
  const { may_shadow, may_create, without_timeouts } = report
  const remedy = `Make a login with: npm run admin -- database-login ${expected === FUNCTIONS_ROLE ? 'functions' : 'workers'}`
  if (bypasses_as === role) return `The database role ${role} bypasses row-level security. ${remedy}`
  if (bypasses_as)
    return `The database role ${role} can become ${bypasses_as}, which bypasses row-level security. ${remedy}`
  if (owns)
    return `The database role ${role} owns the table ${owns} and could take its row-level security away. ${remedy}`
  if (open_table) return `The table ${open_table} has no forced row-level security. Run npm run migrate.`
  if (!is_member) return `The database role ${role} is not in the group ${expected}. ${remedy}`
  if (is_other)
    return `The database role ${role} is in the groups of both the functions and the workers. ${remedy}`
  if (may_shadow)
    return `The database role ${role} may create temporary tables, which could shadow SmartQueue's tables. Run npm run migrate as the owner of the database.`
  if (may_create)
    return `The database role ${role} may create objects in the schema smartqueue. Run npm run migrate as the owner of the database.`
  if (expected === FUNCTIONS_ROLE && without_timeouts.length > 0)
    return `The database role ${role} has no ${without_timeouts.join(', ')}. Run npm run migrate as the role that created it.`
  return undefined
}
