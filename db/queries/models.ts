import type { Query } from '../query.ts'
import type { AccuracyValues } from './learning.ts'

export type ModelRow = {
  version: number
  parent: number | null
  status: 'champion' | 'retired' | 'rejected' | 'rolled_back'
  trained_on: number
  /** The organisation whose runs alone it was trained on. */
  only_org: string | null
  /** In base64. */
  weights: string | null
}

/** The champion, then its possible successors, the best first. A version that was rolled back comes last. */
export const listModels = (): Query<ModelRow> => ({
  name: 'list-models',
  text: `
    select
      version, parent, status, trained_on::double precision as trained_on, only_org,
      encode(weights, 'base64') as weights
    from smartqueue.models
    where weights is not null
      or status = 'champion'
    order by status = 'champion' desc, status = 'retired' desc, version desc
    limit 21`,
  values: [],
})

/**
 * Makes a version the champion without a contest: the first one, or a former one because the champion cannot be read.
 * The unreadable one keeps its weights, which another release may read.
 */
export const crownModel = (crowned: {
  term: string
  version: number
  weights: string | null
}): Query<{ version: number }> => ({
  name: 'crown-model',
  text: `
    with unreadable as (
      update smartqueue.models
      set status = 'retired', evaluation = evaluation || '{"unreadable": true}'
      where status = 'champion'
        and (select smartqueue.in_term($1::bigint))
      returning version
    )
    insert into smartqueue.models (version, status, weights, decided_at, trained_on)
    select $2::int, 'champion', decode($3::text, 'base64'), now(), 0
    where (select smartqueue.in_term($1::bigint))
      -- There is one champion: first that goes.
      and (select count(*) from unreadable) >= 0
    on conflict (version) do update
    set status = 'champion', decided_at = now()
    returning version`,
  values: [crowned.term, crowned.version, crowned.weights],
})

export type ModelDecision = {
  term: string
  version: number
  /** The champion of that time. */
  against: number
  evaluation: Record<string, unknown>
}

/**
 * Stores a challenger, promoted or rejected. Weights are kept of 20 versions, to roll back to, and metadata of 500. No
 * row: the term is over, or the champion is another.
 */
export const storeChallenger = (
  challenger: ModelDecision & {
    promoted: boolean
    trainedOn: number
    onlyOrg: string | null
    weights: string | null
    /** A promotion is a point of the learning curve. */
    accuracy: AccuracyValues | undefined
  },
): Query<{ version: number }> => ({
  name: 'store-challenger',
  text: `
    with judged as materialized (
      select version
      from smartqueue.models
      where version = $3::int
        and status = 'champion'
        and not exists (select from smartqueue.models where version = $2::int)
        and (select smartqueue.in_term($1::bigint))
    ),
    retired as (
      update smartqueue.models
      set status = 'retired'
      where version = any (array(select version from judged))
        and $4::boolean
      returning version
    ),
    decided as (
      insert into smartqueue.models (
        version, parent, status, weights, decided_at, trained_on, only_org, evaluation
      )
      select
        $2::int, $3::int, case when $4::boolean then 'champion' else 'rejected' end, decode($5::text, 'base64'), now(),
        $6::bigint, $9::uuid, $7::text::jsonb
      from judged
      -- There is one champion: first the old one goes.
      where (select count(*) from retired) >= 0
      returning version
    ),
    weights_forgotten as (
      update smartqueue.models
      set weights = null
      where exists (select from decided)
        and version in (
          select version
          from smartqueue.models
          where weights is not null
            and status <> 'champion'
          order by version desc
          offset 18
        )
    ),
    forgotten as (
      delete from smartqueue.models
      where exists (select from decided)
        and weights is null
        and status <> 'champion'
        and version in (select version from smartqueue.models order by version desc offset 499)
    ),
    point as (
      insert into smartqueue.accuracy_points (model_version, accuracy)
      select version, $8::text::jsonb
      from decided
      where $8::text is not null
      on conflict do nothing
    )
    select version
    from decided`,
  values: [
    challenger.term,
    challenger.version,
    challenger.against,
    challenger.promoted,
    challenger.weights,
    challenger.trainedOn,
    JSON.stringify(challenger.evaluation),
    challenger.accuracy ? JSON.stringify(challenger.accuracy) : null,
    challenger.onlyOrg,
  ],
})

/** The champion was worse than the one before, which takes its place again. */
export const rollBackModel = ({
  term,
  version,
  against,
  evaluation,
}: ModelDecision): Query<{ version: number }> => ({
  name: 'roll-back-model',
  text: `
    with fallen as (
      update smartqueue.models
      set
        status = 'rolled_back', decided_at = now(),
        evaluation = $4::text::jsonb || jsonb_build_object('promotion', evaluation)
      where version = $2::int
        and status = 'champion'
        and exists (select from smartqueue.models where version = $3::int and weights is not null)
        and (select smartqueue.in_term($1::bigint))
      returning version
    )
    update smartqueue.models
    set status = 'champion'
    where version = $3::int
      and exists (select from fallen)
    returning version`,
  values: [term, version, against, JSON.stringify(evaluation)],
})
