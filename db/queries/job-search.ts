/**
 * Finds the ids of jobs that fit a filter, newest first, without reading all jobs of an organisation. (But for a
 * creator who made few or none: an index for that would cost each submission an entry.)
 *
 * A state is looked up in the table that holds its jobs, a priority in an index that has it in order.
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
}: Omit<JobSearch, 'orgId'> & { orgId: string | null }): { text: string; values: QueryValue[] } => {
  const values: QueryValue[] = [orgId, before ?? LAST_ID, limit]
  const conditions = conditionsOf(filter, (value) => `$${values.push(value)}`)
  const places = filter.statuses?.flatMap((status) => PLACES[status])
  if (!places) return { text: searchAll(filter, conditions), values }
  const parts = places.map((place) => searchPlace(place, conditions, limit))
  return { text: parts.length === 1 ? parts.join() : merge(parts), values }
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** `few`: so few rows that reading all of them is cheaper than asking for each. */
type Place = { table: string; state: string; few?: true }

const HELD = `(select job_id, org_id, started_at from held_jobs where org_id = $1::uuid)`

/** Where the jobs of a state stand, as `job_overview` has it. */
const PLACES: Record<JobState, Place[]> = {
  pending: [{ table: 'waiting_jobs', state: `q.state = 'pending'` }],
  retrying: [{ table: 'waiting_jobs', state: `q.state = 'retrying'` }],
  blocked: [{ table: 'blocked_jobs', state: 'true' }],
  ready: [
    { table: 'ready_jobs', state: 'true' },
    { table: HELD, state: 'q.started_at is null', few: true },
  ],
  running: [{ table: HELD, state: 'q.started_at is not null', few: true }],
  completed: [{ table: 'finished_jobs', state: `q.state = 'completed'` }],
  failed: [{ table: 'finished_jobs', state: `q.state = 'failed'` }],
  cancelled: [{ table: 'finished_jobs', state: `q.state = 'cancelled'` }],
}

const all = (conditions: string[]): string =>
  conditions.join(`
        and `)

const merge = (parts: string[]): string => `
      select id
      from (${parts.map((part) => `(${part})`).join(' union all ')}) part
      order by id desc
      limit $3::int`

const searchAll = ({ tag }: JobFilter, conditions: Conditions): string => {
  const { stream, traits } = conditions
  const ofOrg = ofOrganisation(conditions)
  const isOrdered = stream('j').length === 0 && traits.length <= 1 && tag === undefined
  if (isOrdered) return inOrder('j.id', 'jobs j', [...ofOrg, ...traits])
  const columns = 'j.id, j.type, j.name, j.tags, j.priority, j.created_by'
  const window = inOrder(columns, 'jobs j', ofOrg, IN_WINDOW)
  const recent = inOrder('j.id', 'newest j', [...stream('j'), ...traits])
  return newestFirst(window, recent, traits.length > 0 ? everyHit(conditions) : searchStreams(conditions))
}

const searchPlace = ({ table, state, few }: Place, conditions: Conditions, limit: number): string => {
  const { stream, traits, range, time, place } = conditions
  const ofPlace = ['q.org_id = $1::uuid', state, 'q.job_id < $2::uuid', ...range('q.job_id'), ...place]
  const ofJob = [...stream('j'), ...traits, ...time]
  if (ofJob.length === 0) return inOrder('q.job_id as id', `${table} q`, ofPlace, BY_PLACE)
  // Of more than the window there is no first look: to count is to join.
  if (ofJob.length === time.length || limit > WINDOW)
    return inOrder('j.id', `${table} q${JOIN_JOBS}`, [...ofPlace, ...ofJob], BY_PLACE)
  const window = inOrder('q.org_id, q.job_id', `${table} q`, ofPlace, { ...BY_PLACE, ...IN_WINDOW })
  const recent = inOrder('j.id', `newest q${JOIN_JOBS}`, ofJob, BY_PLACE)
  const isInPlace = few
    ? `id in (select q.job_id from ${table} q where ${all(ofPlace)})`
    : `exists (select from ${table} q where ${all([...ofPlace, 'q.job_id = hit.id'])})`
  return newestFirst(window, recent, everyHit(conditions, isInPlace))
}

/**
 * Each by its key. As a plain join, jobs of an organisation that the statistics do not know yet were looked up by the
 * organisation alone, all of them for each.
 */
const JOIN_JOBS = `
      cross join lateral (
        select *
        from jobs
        where org_id = q.org_id
          and id = q.job_id
        offset 0
      ) j`

const inTime = ({ range, time }: Conditions): string[] => ['j.id < $2::uuid', ...range('j.id'), ...time]

const ofOrganisation = (conditions: Conditions): string[] => ['j.org_id = $1::uuid', ...inTime(conditions)]

/** The stream is one of the organisation's: to ask for that again would only mislead the planner. */
const ofStreamS = (conditions: Conditions): string => all([...inTime(conditions), 'j.stream_id = s.id'])

/** 2 ms to look through, and enough to fill a page with what one job in a hundred is. */
const WINDOW = 5000
const IN_WINDOW = { limit: String(WINDOW) }
const BY_PLACE = { order: 'q.job_id' } as const

const inOrder = (
  columns: string,
  from: string,
  conditions: string[],
  { order = 'j.id', limit = '$3::int' }: { order?: 'j.id' | 'q.job_id'; limit?: string } = {},
): string => `
      select ${columns}
      from ${from}
      where ${all(conditions)}
      order by ${order} desc
      limit ${limit}`

/** The thorough search is not even begun if the newest fill the page, or are all that there is. */
const newestFirst = (window: string, recent: string, thorough: string): string => `
      with newest as materialized (${window}
      ),
      recent as materialized (${recent}
      ),
      enough as materialized (
        select (select count(*) from recent) >= $3::int or (select count(*) from newest) < ${WINDOW} as enough
      )
      select id
      from recent
      where (select enough from enough)
      union all
      select id
      from (${thorough}
      ) thorough
      where not (select enough from enough)
      order by id desc`

/**
 * All jobs of the type, name and traits, without a limit: the planner looks for the cheapest way to all of them. Then,
 * from the newest on, those in the state that is wanted.
 */
const everyHit = (conditions: Conditions, isWanted = 'true'): string => {
  const { stream, traits, tag } = conditions
  const ofJob = all([...stream('j'), ...ofOrganisation(conditions), ...traits])
  const ofTag = (tag: string): string => `tagged_jobs($1::uuid, ${tag}) as t (id)
        cross join lateral (
          select *
          from jobs
          where org_id = $1::uuid
            and id = t.id
          offset 0
        ) j
        where ${ofJob}`
  const ofStream = `streams s
        cross join lateral (
          select j.id
          from jobs j
          where ${ofStreamS(conditions)}
          offset 0
        ) j
        where ${all(['s.org_id = $1::uuid', ...stream('s')])}`
  return `
      with hit as materialized (
        select j.id
        from ${tag !== undefined ? ofTag(tag) : traits.length === 0 ? ofStream : `jobs j where ${ofJob}`}
      )
      select id
      from (select id from hit order by id desc) hit
      where ${isWanted}
      order by id desc
      limit $3::int`
}

/**
 * A page can only come from as many streams as it has rows: those whose newest job is newest. So streams with nothing
 * on the page cost one look at the index each.
 */
const searchStreams = (conditions: Conditions): string => {
  const ofStream = ofStreamS(conditions)
  return `
      with stream as materialized (
        select s.id
        from streams s
        where ${all(['s.org_id = $1::uuid', ...conditions.stream('s')])}
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
