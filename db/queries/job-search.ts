/**
 * Finds the ids of jobs that fit a filter, newest first, without reading all jobs of an organisation. (But for a
 * creator who made few or none: an index for that would cost each submission an entry.)
 *
 * A state is looked up in the table that holds its jobs, a priority in an index that has it in order.
 * A tag, a text, a type with thousands of names, or a mix of filters has no such order. There the newest jobs are looked
 * through first, which fills the page if what is wanted is common. If it does not, it is rare, and all of it is
 * fetched by its index. Left to the planner, a limit makes it walk backwards through everything for a rare tag.
 */
import type { QueryValue } from '../query.ts'
import type { JobState } from '../rules/job-states.ts'
import { type Conditions, conditionsOf, type JobFilter } from './job-filter.ts'
import { all, everyHit, ofOrganisation, searchSeries, searchTexts } from './job-hits.ts'

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
  if (!places) return { text: searchAll(conditions), values }
  const parts = places.map((place) => searchPlace(place, conditions, limit))
  return { text: parts.length === 1 ? parts.join() : merge(parts), values }
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** `few`: so few rows that reading all of them is cheaper than asking for each. */
type Place = { table: string; state: string; few?: true }

const HELD = `(select job_id, org_id, started_at from smartqueue.held_jobs where org_id = $1::uuid)`

/** Where the jobs of a state stand, as `job_overview` has it. */
const PLACES: Record<JobState, Place[]> = {
  pending: [{ table: 'smartqueue.waiting_jobs', state: `q.state = 'pending'` }],
  retrying: [{ table: 'smartqueue.waiting_jobs', state: `q.state = 'retrying'` }],
  blocked: [{ table: 'smartqueue.blocked_jobs', state: 'true' }],
  ready: [
    { table: 'smartqueue.ready_jobs', state: 'true' },
    { table: HELD, state: 'q.started_at is null', few: true },
  ],
  running: [{ table: HELD, state: 'q.started_at is not null', few: true }],
  completed: [{ table: 'smartqueue.finished_jobs', state: `q.state = 'completed'` }],
  failed: [{ table: 'smartqueue.finished_jobs', state: `q.state = 'failed'` }],
  cancelled: [{ table: 'smartqueue.finished_jobs', state: `q.state = 'cancelled'` }],
}

const merge = (parts: string[]): string => `
      select id
      from (${parts.map((part) => `(${part})`).join(' union all ')}) part
      order by id desc
      limit $3::int`

const searchAll = (conditions: Conditions): string => {
  const { series, traits, tag, text } = conditions
  const ofOrg = ofOrganisation(conditions)
  const isOrdered = series('j').length === 0 && traits.length <= 1 && tag === undefined && !text
  if (isOrdered) return inOrder('j.id', 'smartqueue.jobs j', [...ofOrg, ...traits])
  const columns = 'j.id, j.type, j.name, j.tags, j.priority, j.created_by'
  const window = inOrder(columns, 'smartqueue.jobs j', ofOrg, IN_WINDOW)
  const recent = inOrder('j.id', 'newest j', ofRow(conditions))
  return newestFirst(window, recent, searchThoroughly(conditions))
}

const searchThoroughly = (conditions: Conditions): string => {
  if (conditions.traits.length > 0) return everyHit(conditions)
  return conditions.text ? searchTexts(conditions) : searchSeries(conditions)
}

/** Whatever is asked of the job itself, but its time. */
const ofRow = ({ series, traits, text }: Conditions): string[] => [
  ...series('j'),
  ...traits,
  ...(text ? [text.fits] : []),
]

const searchPlace = ({ table, state, few }: Place, conditions: Conditions, limit: number): string => {
  const { range, time, place } = conditions
  const ofPlace = ['q.org_id = $1::uuid', state, 'q.job_id < $2::uuid', ...range('q.job_id'), ...place]
  const ofJob = [...ofRow(conditions), ...time]
  if (ofJob.length === 0) return inOrder('q.job_id as id', `${table} q`, ofPlace, BY_PLACE)
  // Of more than the window there is no first look: to count is to join.
  if (ofJob.length === time.length || limit > WINDOW)
    return inOrder('j.id', `${table} q${JOIN_JOBS}`, [...ofPlace, ...ofJob], BY_PLACE)
  const window = inOrder('q.org_id, q.job_id', `${table} q`, ofPlace, { ...BY_PLACE, ...IN_WINDOW })
  const recent = inOrder('j.id', `newest q${JOIN_JOBS}`, ofJob, BY_PLACE)
  const isInPlace = few
    ? `id in (select q.job_id from ${table} q where ${all(ofPlace)})`
    : `exists (select from ${table} q where ${all([...ofPlace, 'q.job_id = hit.id'])}${conditions.text ? EACH : ''})`
  return newestFirst(window, recent, everyHit(conditions, isInPlace))
}

/** The planner takes a text to be in a third of all names, and would read all jobs of the state for a few hits. */
const EACH = ' offset 0'

/**
 * Each by its key. As a plain join, jobs of an organisation that the statistics do not know yet were looked up by the
 * organisation alone, all of them for each.
 */
const JOIN_JOBS = `
      cross join lateral (
        select *
        from smartqueue.jobs
        where org_id = q.org_id
          and id = q.job_id
        offset 0
      ) j`

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
