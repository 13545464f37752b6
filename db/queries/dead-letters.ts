import type { Query, QueryValue } from '../query.ts'
import type { JobFailure } from './jobs.ts'

/** Failed jobs with the same error, but for ids, numbers and quoted values. */
export type DeadLetterGroup = {
  fingerprint: string
  count: number
  error: JobFailure
  types: string[]
  first_failed_at: string
  last_failed_at: string
  example_job_ids: string[]
  /** Microseconds of `last_failed_at`, which a Date does not hold. */
  position: string
}

export type DeadLetterPage = {
  orgId: string
  type?: string | undefined
  name?: string | undefined
  after: { position: string; fingerprint: string } | null
  limit: number
}

/** Whose types a group tells. To look at all of a group of 100,000 takes as long as to count it. */
const TYPES_OF = 200

/** The groups that failed last first. Counts 100,000 dead letters in some 50 ms: from the index alone. */
export const listDeadLetters = ({
  orgId,
  type,
  name,
  after,
  limit,
}: DeadLetterPage): Query<DeadLetterGroup> => {
  const values: QueryValue[] = [orgId, after?.position ?? null, after?.fingerprint ?? null, limit]
  const take = (value: string): string => `$${values.push(value)}::text`
  const ofSeries = [
    ...(type === undefined ? [] : [`s.type = ${take(type)}`]),
    ...(name === undefined ? [] : [`s.name = ${take(name)}`]),
  ]
  const join =
    ofSeries.length === 0
      ? ''
      : `join smartqueue.series s on ${['s.id = f.series_id', ...ofSeries].join(' and ')}`
  const shape = [type === undefined ? '' : '-type', name === undefined ? '' : '-name'].join('')
  return {
    name: `list-dead-letters${shape}`,
    text: `
    with dead as materialized (
      select
        f.fingerprint, count(*)::integer as count, min(f.finished_at) as first_failed_at,
        max(f.finished_at) as last_failed_at,
        (extract(epoch from max(f.finished_at)) * 1000000)::bigint as position
      from smartqueue.finished_jobs f
      ${join}
      where f.org_id = $1::uuid
        and f.state = 'failed'
      group by f.fingerprint
    ),
    page as materialized (
      select *
      from dead
      where $2::bigint is null or (position, fingerprint) < ($2::bigint, $3::text)
      order by position desc, fingerprint desc
      limit $4::int
    )
    select
      page.fingerprint, page.count, page.first_failed_at, page.last_failed_at, page.position, newest.error, newest.types,
      newest.example_job_ids
    from page
    cross join lateral (
      select
        array_agg(distinct j.type) as types,
        (array_agg(f.job_id order by f.job_id desc))[:3] as example_job_ids,
        (
          select e.error
          from smartqueue.finished_jobs e
          where e.org_id = $1::uuid
            and e.job_id = (array_agg(f.job_id order by f.job_id desc))[1]
        ) as error
      from (
        select f.job_id, f.series_id
        from smartqueue.finished_jobs f
        ${join}
        where f.org_id = $1::uuid
          and f.state = 'failed'
          and f.fingerprint = page.fingerprint
        order by f.job_id desc
        limit ${TYPES_OF}
      ) f
      join smartqueue.series j on j.id = f.series_id
    ) newest
    order by page.position desc, page.fingerprint desc`,
    values,
  }
}
