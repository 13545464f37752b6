import type { Query } from '../query.ts'

/** The groups that the two runtimes' logins are members of. */
export const FUNCTIONS_ROLE = 'smartqueue_functions'
export const WORKERS_ROLE = 'smartqueue_workers'

/** Why a runtime must not start with the role of this session: how it could evade row-level security. Null if it may. */
export const findRowSecurityFault = (group: string): Query<{ fault: string | null }> => ({
  name: 'find-row-security-fault',
  text: `
    select
      case
        when unprotected.name is not null then
          format('The table %s has no forced row-level security. Run npm run migrate.', unprotected.name)
        else 'The database role ' || session_user || case
          when bypass.role = session_user then ' bypasses row-level security. ' || remedy
          when bypass.role is not null then
            format(' can become %s, which bypasses row-level security. ', bypass.role) || remedy
          when owned.name is not null then
            format(' owns the table %s and could take its row-level security away. ', owned.name) || remedy
          when pg_has_role(session_user, to_regrole($1::text), 'member') is not true then
            format(' is not in the group %s. ', $1::text) || remedy
          when pg_has_role(session_user, to_regrole($2::text), 'member') then
            ' is in the groups of both the functions and the workers. ' || remedy
          when has_database_privilege(session_user, current_database(), 'temporary') then
            ' may create temporary tables, which could shadow the tables of SmartQueue. '
              'Run npm run migrate as the owner of the database.'
          when has_schema_privilege(session_user, to_regnamespace('smartqueue'), 'create') then
            ' may create objects in the schema smartqueue. Run npm run migrate as the owner of the database.'
          when timeouts.missing is not null and $1::text = 'smartqueue_functions' then
            format(' has no %s. Run npm run migrate as the role that created it.', timeouts.missing)
        end
      end as fault
    from (
      select 'Make a login with: npm run admin -- database-login ' || replace($1::text, 'smartqueue_', '')
    ) as advice (remedy)
    cross join (
      -- The role itself comes first.
      select (array_agg(rolname order by rolname <> session_user, rolname))[1] as role
      from pg_roles
      where (rolsuper or rolbypassrls)
        and pg_has_role(session_user, oid, 'member')
    ) as bypass
    cross join (
      select min(c.relname::text) as name
      from pg_class c
      where c.relnamespace = to_regnamespace('smartqueue')
        and c.relrowsecurity
        and pg_has_role(session_user, c.relowner, 'member')
    ) as owned
    cross join (
      select min(c.relname::text) as name
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attname in ('org_id', 'org_ids') and not a.attisdropped
      where c.relnamespace = to_regnamespace('smartqueue')
        and c.relkind = 'r'
        and not (c.relrowsecurity and c.relforcerowsecurity)
    ) as unprotected
    cross join (
      select string_agg(s.name, ', ' order by s.name) as missing
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
    ) as timeouts`,
  values: [group, group === FUNCTIONS_ROLE ? WORKERS_ROLE : FUNCTIONS_ROLE],
})
