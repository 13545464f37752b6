import type { Query } from '../query.ts'

export type JobTypeRow = { type: string; payload_schema: Record<string, unknown> }

/** A worker announces what it can run. A type keeps its row when its last worker goes: jobs may wait for the next. */
export const registerJobTypes = (types: JobTypeRow[]): Query<never> => ({
  name: 'register-job-types',
  text: `
    insert into smartqueue.job_types (type, payload_schema)
    select t.type, t.payload_schema
    from jsonb_to_recordset($1::jsonb) as t (type text, payload_schema jsonb)
    order by t.type
    on conflict (type) do update
    set payload_schema = excluded.payload_schema
    where job_types.payload_schema is distinct from excluded.payload_schema`,
  values: [JSON.stringify(types)],
})

/** How many workers take jobs of the type now. */
export type KnownType = JobTypeRow & { workers: number }

/** Types of which jobs can be submitted: not ours, although a handler of an earlier release may have had its name. */
export const listJobTypes = (page: { after: string | null; limit: number | null }): Query<KnownType> => ({
  name: 'list-job-types',
  text: `
    select t.type, t.payload_schema, (
      select count(*)::integer
      from smartqueue.workers w
      where w.status = 'online'
        and not smartqueue.is_silent(w.last_seen)
        and t.type = any (w.types)
    ) as workers
    from smartqueue.job_types t
    where t.type <> 'callback'
      and t.type > coalesce($1::text, '')
    order by t.type
    limit $2::int`,
  values: [page.after, page.limit],
})
