import type { Query } from '../query.ts'
import { CALLBACK_TYPE } from '../rules/callbacks.ts'

export type JobTypeRow = { type: string; payload_schema: Record<string, unknown> }

/** A worker announces what it can run. A type keeps its row when its last worker goes: jobs may wait for the next. */
export const registerJobTypes = (types: JobTypeRow[]): Query<never> => ({
  name: 'register-job-types',
  text: `
    insert into job_types (type, payload_schema)
    select t.type, t.payload_schema
    from jsonb_to_recordset($1::jsonb) as t (type text, payload_schema jsonb)
    order by t.type
    on conflict (type) do update
    set payload_schema = excluded.payload_schema, registered_at = now()
    where job_types.payload_schema is distinct from excluded.payload_schema`,
  values: [JSON.stringify(types)],
})

/** Those that jobs can be submitted of: not ours, although a handler of an earlier release may have had its name. */
export const listJobTypes = (): Query<JobTypeRow> => ({
  name: 'list-job-types',
  text: `
    select type, payload_schema
    from job_types
    where type <> '${CALLBACK_TYPE}'
    order by type`,
  values: [],
})
