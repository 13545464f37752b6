import type { TestDatabase } from './database.ts'

/** Everything that makes up a schema, as sorted lines, so that two databases can be compared. */
export const describeSchema = async (database: TestDatabase): Promise<string[]> => {
  const rows = await database.sql<{ line: string }>(CATALOG)
  return rows.map(({ line }) => line)
}

const CATALOG = `
  with relation as (
    select c.oid, c.relname, c.relkind, c.reloptions
    from pg_class c
    where c.relnamespace = 'public'::regnamespace
      and c.relkind in ('r', 'p', 'v', 'm', 'S')
      and c.relname <> 'schema_migrations'
  )
  select 'relation ' || relname || ' ' || relkind::text || ' ' || coalesce(reloptions::text, '') || ' '
    || coalesce(obj_description(oid, 'pg_class'), '') as line
  from relation
  union all
  select 'column ' || r.relname || '.' || a.attname || ' #' || a.attnum || ' ' || format_type(a.atttypid, a.atttypmod)
    || case when a.attnotnull then ' not null' else '' end || ' ' || a.attidentity::text || ' '
    || coalesce(pg_get_expr(d.adbin, d.adrelid), '') || ' ' || coalesce(col_description(r.oid, a.attnum), '')
  from relation r
  join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
  union all
  select 'constraint ' || r.relname || ' ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
  from relation r
  join pg_constraint k on k.conrelid = r.oid
  union all
  select 'index ' || pg_get_indexdef(i.indexrelid) || ' ' || coalesce(obj_description(i.indexrelid, 'pg_class'), '')
  from relation r
  join pg_index i on i.indrelid = r.oid
  union all
  select 'view ' || relname || ' ' || pg_get_viewdef(oid)
  from relation
  where relkind in ('v', 'm')
  union all
  select 'enum ' || t.typname || ' ' || string_agg(e.enumlabel, ' ' order by e.enumsortorder) || ' '
    || coalesce(obj_description(t.oid, 'pg_type'), '')
  from pg_type t
  join pg_enum e on e.enumtypid = t.oid
  where t.typnamespace = 'public'::regnamespace
  group by t.oid, t.typname
  union all
  select 'domain ' || t.typname || ' ' || format_type(t.typbasetype, t.typtypmod) || ' ' || k.conname || ' '
    || pg_get_constraintdef(k.oid)
  from pg_type t
  join pg_constraint k on k.contypid = t.oid
  where t.typnamespace = 'public'::regnamespace
  union all
  select 'function ' || pg_get_functiondef(p.oid)
  from pg_proc p
  where p.pronamespace = 'public'::regnamespace
  union all
  select 'trigger ' || r.relname || ' ' || pg_get_triggerdef(t.oid)
  from relation r
  join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
  union all
  select 'row security ' || relname || ' ' || relrowsecurity || ' ' || relforcerowsecurity
  from pg_class
  where oid in (select oid from relation)
  union all
  select 'policy ' || tablename || ' ' || policyname || ' ' || permissive || ' ' || roles::text || ' ' || cmd || ' '
    || coalesce(qual, '') || ' ' || coalesce(with_check, '')
  from pg_policies
  where schemaname = 'public'
  union all
  select 'policy comment ' || obj_description(p.oid, 'pg_policy')
  from pg_policy p
  where obj_description(p.oid, 'pg_policy') is not null
  union all
  select 'grant ' || r.relname || ' ' || a.grantee::regrole || ' ' || a.privilege_type
  from relation r
  join pg_class c on c.oid = r.oid
  cross join lateral aclexplode(c.relacl) a
  union all
  select 'column grant ' || r.relname || '.' || t.attname || ' ' || a.grantee::regrole || ' ' || a.privilege_type
  from relation r
  join pg_attribute t on t.attrelid = r.oid
  cross join lateral aclexplode(t.attacl) a
  union all
  select 'row of quotas ' || to_jsonb(q)::text
  from quotas q
  order by line`
