import type { Statement } from '../sources/ask.ts'

/**
 * Statements of `etl` jobs in a database that the operator has named, not SmartQueue's own. Its table `smartqueue_loads`
 * counts the rows of each job in the transaction that inserts them, and keeps the highest fencing token seen: an earlier
 * holder finds no row to count in, and inserts nothing.
 */

/** A table to load into, by its names in the catalog. */
export type LoadTable = { readonly schema: string; readonly name: string }

export type LoadMode =
  | { readonly mode: 'append' }
  | { readonly mode: 'upsert'; readonly key: readonly string[] }

export const CREATE_LOADS = `
  create table if not exists smartqueue_loads (
    job_id uuid primary key,
    fencing_token bigint not null,
    rows bigint not null default 0,
    bad_rows bigint not null default 0,
    bad_row_samples jsonb not null default '[]',
    digest text not null default '',
    result jsonb,
    updated_at timestamptz not null default now()
  )`

/**
 * For a session that loads. An earlier holder may hang in a batch: nobody waits long for its row, and its transaction
 * ends after a minute.
 */
export const boundWaiting = (): Statement<never> => ({
  text: `
    select set_config('lock_timeout', '10s', false),
      set_config('idle_in_transaction_session_timeout', '60s', false)`,
  values: [],
})

/** Rows of tables may be waited for, and a transaction for the whole load may wait for its source. */
export const unboundWaiting = (options: { atomic: boolean }): Statement<never> => ({
  text: `
    select set_config('lock_timeout', '0', false),
      set_config('idle_in_transaction_session_timeout', $1::text, false)`,
  values: [options.atomic ? '0' : '60s'],
})

export const findLoads = (): Statement<{ found: boolean }> => ({
  text: `select to_regclass('smartqueue_loads') is not null as found`,
  values: [],
})

/** The columns that can be written; no row if there is no such table. Without a schema the search path decides. */
export const findColumns = (table: string): Statement<LoadTable & { column: string }> => ({
  text: `
    select n.nspname as schema, c.relname as name, a.attname as column
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid
    where c.oid = to_regclass($1::text)
      and c.relkind in ('r', 'p', 'v', 'f')
      and a.attnum > 0
      and not a.attisdropped
      and a.attgenerated = ''
    order by a.attnum`,
  values: [table.split('.').map(quoteName).join('.')],
})

/** A finished load is remembered for a week, one that may still be retried for a year. */
export const deleteOldLoads = (): Statement<never> => ({
  text: `
    delete from smartqueue_loads
    where updated_at < now() - case when result is null then interval '1 year' else interval '7 days' end`,
  values: [],
})

export type LoadRow = {
  rows: string
  bad_rows: string
  bad_row_samples: unknown[]
  digest: string
  result: unknown
}

/**
 * Makes this attempt the holder of the load; no row if a later attempt holds it. `restart` resets the counts of an
 * unfinished load, whose rows will come again.
 */
export const claimLoad = (claim: { jobId: string; token: string; restart: boolean }): Statement<LoadRow> => ({
  text: `
    insert into smartqueue_loads as l (job_id, fencing_token)
    values ($1::uuid, $2::bigint)
    on conflict (job_id) do update
    set fencing_token = excluded.fencing_token,
      rows = case when $3::boolean and l.result is null then 0 else l.rows end,
      bad_rows = case when $3::boolean and l.result is null then 0 else l.bad_rows end,
      bad_row_samples = case when $3::boolean and l.result is null then '[]' else l.bad_row_samples end,
      updated_at = now()
    where l.fencing_token <= excluded.fencing_token
    returning l.rows::text as rows, l.bad_rows::text as bad_rows, l.bad_row_samples, l.digest, l.result`,
  values: [claim.jobId, claim.token, claim.restart],
})

/** How far a load gets with a batch: from so many rows to so many. It moves only for the attempt that holds it. */
export type LoadStep = {
  readonly jobId: string
  readonly token: string
  readonly from: number
  readonly to: number
  /** Of all rows so far. */
  readonly digest: string
}

export type BadRowTotals = { readonly count: number; readonly samplesJson: string }

/** After the rows of a batch, in their transaction. No row if the load has moved on without this attempt. */
export const moveLoad = (step: LoadStep, bad: BadRowTotals): Statement<{ job_id: string }> => ({
  text: `
    update smartqueue_loads
    set rows = $4::bigint,
      digest = $5::text,
      bad_rows = $6::bigint,
      bad_row_samples = $7::jsonb,
      updated_at = now()
    where job_id = $1::uuid
      and fencing_token = $2::bigint
      and rows = $3::bigint
      and result is null
    returning job_id`,
  values: [step.jobId, step.token, step.from, step.to, step.digest, bad.count, bad.samplesJson],
})

/** Keeps the result for an attempt that comes later, and would load again. */
export const finishLoad = (
  step: Pick<LoadStep, 'jobId' | 'token' | 'to'>,
  resultJson: string,
): Statement<{ job_id: string }> => ({
  text: `
    update smartqueue_loads
    set result = $4::jsonb,
      updated_at = now()
    where job_id = $1::uuid
      and fencing_token = $2::bigint
      and rows = $3::bigint
      and result is null
    returning job_id`,
  values: [step.jobId, step.token, step.to, resultJson],
})

/** Rows with the same fields, as a JSON array. */
export type RowsToInsert = {
  readonly table: LoadTable
  readonly mode: LoadMode
  readonly columns: readonly string[]
  readonly json: string
}

/** A whole batch in one statement, and so in one transaction: the load moves on, and only then are its rows inserted. */
export const loadBatch = (step: LoadStep, rows: RowsToInsert): Statement<{ moved: number }> => ({
  text: `
    with moved as (
      update smartqueue_loads
      set rows = $4::bigint,
        digest = $5::text,
        updated_at = now()
      where job_id = $1::uuid
        and fencing_token = $2::bigint
        and rows = $3::bigint
        and result is null
      returning job_id
    ),
    inserted as (${insertion(rows, '$6', 'exists (select from moved)')}
    )
    select count(*)::int as moved
    from moved`,
  values: [step.jobId, step.token, step.from, step.to, step.digest, rows.json],
})

/** Rows alone, for a transaction that moves the load itself. */
export const insertRows = (rows: RowsToInsert): Statement<never> => ({
  text: insertion(rows, '$1', 'true'),
  values: [rows.json],
})

const insertion = (rows: RowsToInsert, parameter: string, condition: string): string =>
  rows.mode.mode === 'append'
    ? append(rows, parameter, condition)
    : upsert(rows, rows.mode.key, parameter, condition)

/** Fields become what the columns are, by the casts that Postgres has for JSON. */
const append = ({ table, columns }: RowsToInsert, parameter: string, condition: string): string => `
      insert into ${quoteTable(table)} (${columns.map(quoteName).join(', ')})
      select ${columns.map((column) => `r.${quoteName(column)}`).join(', ')}
      from jsonb_populate_recordset(null::${quoteTable(table)}, ${parameter}::jsonb) as r
      where ${condition}`

/** Of rows with the same key the last one counts. The database tells which are the same: to it '1' and '01' may be. */
const upsert = (
  { table, columns }: RowsToInsert,
  key: readonly string[],
  parameter: string,
  condition: string,
): string => {
  const keyOfRow = key.map((column) => `r.${quoteName(column)}`).join(', ')
  const changes = columns.filter((column) => !key.includes(column)).map(quoteName)
  const change =
    changes.length === 0
      ? 'nothing'
      : `update set ${changes.map((column) => `${column} = excluded.${column}`).join(', ')}`
  return `
      insert into ${quoteTable(table)} (${columns.map(quoteName).join(', ')})
      select distinct on (${keyOfRow}) ${columns.map((column) => `r.${quoteName(column)}`).join(', ')}
      from jsonb_array_elements(${parameter}::jsonb) with ordinality as given (fields, place)
      cross join lateral jsonb_populate_record(null::${quoteTable(table)}, given.fields) as r
      where ${condition}
      order by ${keyOfRow}, given.place desc
      on conflict (${key.map(quoteName).join(', ')}) do ${change}`
}

const quoteTable = ({ schema, name }: LoadTable): string => `${quoteName(schema)}.${quoteName(name)}`

/** A name is never a value: it stands in the text, and the quotes keep it a name whatever it is. */
const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`
