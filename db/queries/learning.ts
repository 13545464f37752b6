import type { Query } from '../query.ts'
import type { OrgTypeEstimateRow, TypeEstimateRow } from './prediction-inputs.ts'

/** The last execution that was learned from: its transaction, and its number within it. */
export type Cursor = { xid: string; id: string }

export type LearningStateRow = Cursor & {
  learned: number
  by_source: Record<string, number>
  /** Ever given, 0 if there is none. */
  newest_version: number
  /** The newest point of the learning curve: how old it is, and over how many executions. */
  point_age_s: number | null
  point_executions: number | null
}

/** Where a term begins to learn. No row: it is over. */
export const getLearningState = (term: string): Query<LearningStateRow> => ({
  name: 'get-learning-state',
  text: `
    select
      s.xid::text, s.id::text, s.learned::double precision as learned, s.by_source,
      (select coalesce(max(version), 0) from smartqueue.models) as newest_version,
      extract(epoch from now() - p.at)::double precision as point_age_s,
      (p.accuracy -> 'executions')::int as point_executions
    from smartqueue.learning_state s
    left join lateral (
      select at, accuracy
      from smartqueue.accuracy_points
      order by at desc
      limit 1
    ) p on true
    where (select smartqueue.in_term($1::bigint))`,
  values: [term],
})

export type ExecutionRow = Cursor & {
  outcome: 'completed' | 'failed' | 'timed_out' | 'cancelled'
  ended_at_s: number
  org_id: string
  series_id: string
  /** Null: the series is forgotten. */
  type: string | null
  ran_ms: number
  /** In base64; null: nothing is to be learned from it. */
  sample: string | null
  source: string | null
}

/**
 * The next executions to learn from, in the order of their transactions, up to the oldest transaction that still
 * runs: beyond it, one that commits later could come before one that was read.
 */
export const readExecutions = (after: Cursor, limit: number): Query<ExecutionRow> => ({
  name: 'read-executions',
  text: `
    select xid, id, outcome, ended_at_s, org_id, series_id, type, ran_ms, sample, source
    from smartqueue.unpack_executions(
      array(
        select e
        from smartqueue.executions e
        where (xid, id) > ($1::xid8, $2::bigint)
          and xid < pg_snapshot_xmin(pg_current_snapshot())
        order by xid, id
        limit $3::int
      ),
      $3::int
    )
    order by n, place`,
  values: [after.xid, after.id, limit],
})

/** Those that were learned from, newest first. */
export const recallExecutions = (before: Cursor, limit: number): Query<ExecutionRow> => ({
  name: 'recall-executions',
  text: `
    select xid, id, outcome, ended_at_s, org_id, series_id, type, ran_ms, sample, source
    from smartqueue.unpack_executions(
      array(
        select e
        from smartqueue.executions e
        where (xid, id) <= ($1::xid8, $2::bigint)
        order by xid desc, id desc
        limit $3::int
      ),
      $3::int
    )
    order by n, place desc`,
  values: [before.xid, before.id, limit],
})

export const recallSeries = (ids: readonly string[]): Query<{ series_id: string; memory: string }> => ({
  name: 'recall-series',
  text: `
    select series_id::text, encode(memory, 'base64') as memory
    from smartqueue.series_memories
    where series_id = any ($1::bigint[])`,
  values: [ids],
})

export const recallOrgs = (ids: readonly string[]): Query<{ org_id: string; memory: string }> => ({
  name: 'recall-orgs',
  text: `
    select org_id, encode(memory, 'base64') as memory
    from smartqueue.org_memories
    where org_id = any ($1::uuid[])`,
  values: [ids],
})

export type OrgTypeRow = OrgTypeEstimateRow & { org_id: string; type: string }

export const recallOrgTypes = (orgTypes: readonly { org: string; type: string }[]): Query<OrgTypeRow> => ({
  name: 'recall-org-types',
  text: `
    select
      o.org_id, o.type, o.runs::double precision as runs, o.mean_log, o.deviation_log,
      o.median_log, o.drift_log, encode(o.memory, 'base64') as memory
    from unnest($1::uuid[], $2::text[]) as wanted (org_id, type)
    join smartqueue.org_type_estimates o on o.org_id = wanted.org_id and o.type = wanted.type`,
  values: [orgTypes.map(({ org }) => org), orgTypes.map(({ type }) => type)],
})

/** Estimates that organisations share. */
export const recallTypes = (): Query<TypeEstimateRow> => ({
  name: 'recall-types',
  text: `
    select type, runs::double precision as runs, mean_log, deviation_log, median_log
    from smartqueue.type_estimates`,
  values: [],
})

/** Where organisations do not share estimates, nothing is left of a time when they did. */
export const forgetTypes = (term: string): Query<never> => ({
  name: 'forget-types',
  text: `
    delete from smartqueue.type_estimates
    where (select smartqueue.in_term($1::bigint))`,
  values: [term],
})

export type AccuracyValues = {
  /** Mean absolute error of ln(runtime), by predictor. */
  errors: Record<string, number>
  /** Share of the runtimes below their p90. */
  coverage: number
  /** Mean absolute error in percent of the runtime. */
  mape: number
  /** Absolute mean of ln(runtime / p50) over the newest of them: how far they are off to one side. */
  drift: number
  executions: number
}

/** What has been learned from the executions between two cursors. */
export type Learned = {
  term: string
  from: Cursor
  to: Cursor
  learned: number
  bySource: Record<string, number>
  accuracy: AccuracyValues | undefined
  /** Whether the accuracy is a point of the learning curve. */
  isPoint: boolean
  /** All memories are packed, in base64. */
  series: readonly { id: string; memory: string }[]
  orgs: readonly { id: string; memory: string }[]
  /** Empty unless organisations share estimates. */
  types: readonly TypeEstimateRow[]
  orgTypes: readonly (OrgTypeRow & { memory: string })[]
}

/**
 * Memories and the cursor are stored together, so that after a failure nothing is learned twice and nothing is lost.
 * If the cursor has moved, or the term is over, nothing changes and there is no row. So it can be sent again.
 */
export const storeLearned = (learned: Learned): Query<{ learned: number }> => {
  const { accuracy, series, orgs, types, orgTypes } = learned
  return {
    name: 'store-learned',
    text: `
    with advanced as (
      update smartqueue.learning_state
      set
        xid = $2::xid8, id = $3::bigint, learned = $4::bigint, by_source = $5::text::jsonb,
        accuracy = coalesce($6::text::jsonb, accuracy), updated_at = now()
      where xid = $7::xid8
        and id = $8::bigint
        and (select smartqueue.in_term($1::bigint))
      returning learned
    ),
    series_remembered as (
      insert into smartqueue.series_memories (series_id, org_id, memory)
      select s.id, s.org_id, decode(m.memory, 'base64')
      from jsonb_to_recordset($9::text::jsonb) as m (id bigint, memory text)
      -- Those that have been forgotten meanwhile stay so.
      join smartqueue.series s on s.id = m.id
      where exists (select from advanced)
      for key share of s
      on conflict (series_id) do update
      set memory = excluded.memory, updated_at = now()
    ),
    orgs_remembered as (
      insert into smartqueue.org_memories (org_id, memory)
      select m.id, decode(m.memory, 'base64')
      from jsonb_to_recordset($10::text::jsonb) as m (id uuid, memory text)
      where exists (select from advanced)
        and exists (select from smartqueue.orgs where orgs.id = m.id)
      order by m.id
      on conflict (org_id) do update
      set memory = excluded.memory
    ),
    types_estimated as (
      insert into smartqueue.type_estimates (type, runs, mean_log, deviation_log, median_log)
      select type, runs, mean_log, deviation_log, median_log
      from jsonb_populate_recordset(null::smartqueue.type_estimates, $11::text::jsonb)
      where exists (select from advanced)
      order by type
      on conflict (type) do update
      set
        runs = excluded.runs, mean_log = excluded.mean_log, deviation_log = excluded.deviation_log,
        median_log = excluded.median_log
    ),
    org_types_estimated as (
      insert into smartqueue.org_type_estimates (
        org_id, type, runs, mean_log, deviation_log, median_log, drift_log, memory
      )
      select org_id, type, runs, mean_log, deviation_log, median_log, drift_log, decode(memory, 'base64')
      from jsonb_to_recordset($12::text::jsonb) as o (
        org_id uuid, type text, runs bigint, mean_log double precision, deviation_log double precision,
        median_log double precision, drift_log double precision, memory text
      )
      where exists (select from advanced)
        and exists (select from smartqueue.orgs where orgs.id = o.org_id)
      order by org_id, type
      on conflict (org_id, type) do update
      set
        runs = excluded.runs, mean_log = excluded.mean_log, deviation_log = excluded.deviation_log,
        median_log = excluded.median_log, drift_log = excluded.drift_log, memory = excluded.memory
    ),
    point as (
      insert into smartqueue.accuracy_points (model_version, accuracy)
      select (select version from smartqueue.models where status = 'champion'), $6::text::jsonb
      from advanced
      where $13::boolean
        and $6::text is not null
      on conflict do nothing
    )
    select learned::double precision as learned
    from advanced`,
    values: [
      ...[learned.term, learned.to.xid, learned.to.id, learned.learned, JSON.stringify(learned.bySource)],
      ...[accuracy ? JSON.stringify(accuracy) : null, learned.from.xid, learned.from.id],
      ...[series, orgs, types, orgTypes].map((rows) => JSON.stringify(rows)),
      learned.isPoint,
    ],
  }
}
