/**
 * Finds the ids of jobs that fit a filter, newest first, without ever reading all jobs of an organisation.
 *
 * A state is looked up in the table that holds its jobs, a priority or a creator in an index that has them in order.
 * A tag, a type with thousands of names, or a mix of filters has no such order. There the newest jobs are looked
 * through first, which fills the page if what is wanted is common. If it does not, it is rare, and all of it is
 * fetched by its index. Left to the planner, a limit makes it walk backwards through everything for a rare tag.
 */
import type { QueryValue } from '../query.ts'
import type { JobState } from '../rules/job-states.ts'
import { type Conditions, conditionsOf, type JobFilter } from './job-filter.ts'

export type JobSearch = { orgId: string; filter: JobFilter; before: string | null; limit: number }

/** Parameters: $1 the organisation, $2 the id that all must be below, $3 the limit, then those of the filter. */
export const searchJobs = ({
  orgId,
  filter,
  before,
  limit,
}: JobSearch): { text: string; values: QueryValue[] } => {
  const values: QueryValue[] = [orgId, before ?? LAST_ID, limit]
  const conditions = conditionsOf(filter, (value) => `$${values.push(value)}`)
  const places = filter.statuses?.flatMap((status) => PLACES[status])
  if (!places) return { text: searchAll(filter, conditions), values }
  const parts = places.map((place) => searchPlace(place, conditions))
  return { text: parts.length === 1 ? parts.join() : merge(parts), values }
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

type Place = { table: string; state: string }

/** Where the jobs of a state stand, as `job_overview` has it. */
const PLACES: Record<JobState, Place[]> = {
  pending: [{ table: 'waiting_jobs', state: `q.state = 'pending'` }],
  retrying: [{ table: 'waiting_jobs', state: `q.state = 'retrying'` }],
  blocked: [{ table: 'blocked_jobs', state: 'true' }],
  ready: [
    { table: 'ready_jobs', state: 'true' },
    { table: 'leases', state: 'q.started_at is null' },
  ],
  running: [{ table: 'leases', state: 'q.started_at is not null' }],
  completed: [{ table: 'finished_jobs', state: `q.state = 'completed'` }],
  failed: [{ table: 'finished_jobs', state: `q.state = 'failed'` }],
  cancelled: [{ table: 'finished_jobs', state: `q.state = 'cancelled'` }],
}

const all = (conditions: string[]): string =>
  conditions.join(`
        and `)

const searchPlace = ({ table, state }: Place, { id, job, place }: Conditions): string => `
      select q.job_id as id
      from ${table} q${job.length > 0 ? JOIN_JOBS : ''}
      where ${all(['q.org_id = $1::uuid', state, 'q.job_id < $2::uuid', ...id('q.job_id'), ...place, ...job])}
      order by q.job_id desc
      limit $3::int`

const JOIN_JOBS = `
      join jobs j on j.org_id = q.org_id and j.id = q.job_id`

const merge = (parts: string[]): string => `
      select id
      from (${parts.map((part) => `(${part})`).join(' union all ')}) part
      order by id desc
      limit $3::int`

const searchAll = (filter: JobFilter, conditions: Conditions): string => {
  const { tag, priority, createdBy } = filter
  const others = [tag, priority, createdBy].filter((value) => value !== undefined).length
  const isStream = conditions.stream.length > 0
  if (isStream && others === 0) return newestFirst(conditions, searchStreams(conditions))
  if (tag !== undefined || isStream || others > 1)
    return newestFirst(conditions, searchThoroughly(conditions))
  return searchInOrder(conditions)
}

const OF_ORG = ['j.org_id = $1::uuid', 'j.id < $2::uuid']

const searchInOrder = ({ id, job }: Conditions): string => `
      select j.id
      from jobs j
      where ${all([...OF_ORG, ...id('j.id'), ...job])}
      order by j.id desc
      limit $3::int`

/** 2 ms to look through, and enough to fill a page with what one job in a hundred is. */
const WINDOW = 5000

const newestFirst = ({ id, job }: Conditions, thorough: string): string => `
      with recent as materialized (
        select j.id
        from (
          select id, type, name, tags, priority, created_by, created_at
          from jobs j
          where ${all([...OF_ORG, ...id('j.id')])}
          order by id desc
          limit ${WINDOW}
        ) j
        where ${all(job)}
        order by j.id desc
        limit $3::int
      )
      select id
      from recent
      where (select count(*) from recent) >= $3::int
      union all
      select id
      from (${thorough}
      ) thorough
      where (select count(*) from recent) < $3::int
      order by id desc`

const searchThoroughly = ({ id, job }: Conditions): string => `
      with hit as materialized (
        select j.id
        from jobs j
        where ${all([...OF_ORG, ...id('j.id'), ...job])}
      )
      select id
      from hit
      order by id desc
      limit $3::int`

/**
 * A page can only come from as many streams as it has rows: those whose newest job is newest. So streams with nothing
 * on the page cost one look at the index each.
 */
const searchStreams = ({ id, stream, job }: Conditions): string => {
  const ofStream = all([...OF_ORG, 'j.stream_id = s.id', ...id('j.id'), ...job])
  return `
      with stream as materialized (
        select s.id
        from streams s
        where ${all(['s.org_id = $1::uuid', ...stream])}
      ),
      newest as materialized (
        select s.id
        from stream s
        cross join lateral (
          select j.id
          from jobs j
          where ${ofStream}
          order by j.id desc
          limit 1
        ) j
        order by j.id desc
        limit $3::int
      )
      select j.id
      from newest s
      cross join lateral (
        select j.id
        from jobs j
        where ${ofStream}
        order by j.id desc
        limit $3::int
      ) j
      order by j.id desc
      limit $3::int`
}
