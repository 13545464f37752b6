/** The ways to all jobs of a filter, however old, each by its index. What is rare is found by them; `job-search.ts` says when. */
import type { Conditions, TextCondition } from './job-filter.ts'

/**
 * All jobs of the type, name and traits, without a limit: the planner looks for the cheapest way to all of them. Then,
 * from the newest on, those in the state that is wanted.
 */
export const everyHit = (conditions: Conditions, isWanted = 'true'): string => `
      with hit as materialized (${hits(conditions)}
      )
      select id
      from (select id from hit order by id desc) hit
      where ${isWanted}
      order by id desc
      limit $3::int`

const hits = (conditions: Conditions): string => {
  const { series, traits, tag, text } = conditions
  if (text && tag !== undefined) return hitsOfTextAndTag(conditions, text, tag)
  if (text) return hitsOfText(conditions, text)
  if (tag !== undefined) return hitsOfTag(conditions, tag)
  if (traits.length === 0) return hitsOfSeries(conditions)
  return `
        select j.id
        from smartqueue.jobs j
        where ${all([...series('j'), ...ofOrganisation(conditions), ...traits])}`
}

const hitsOfText = (conditions: Conditions, text: TextCondition): string =>
  [hitsOfSeries(conditions), ...otherHits(conditions, text)].join(UNION)

/** A text that is in the names of so many series says less than a tag. */
const MANY_SERIES = 100

/** Either may be in nearly all jobs, and the other in a few: by the wrong one of a third of a million it took a second. */
const hitsOfTextAndTag = (conditions: Conditions, text: TextCondition, tag: string): string => `
        with named as materialized (
          select count(*) > ${MANY_SERIES} as many
          from smartqueue.series s
          where ${all(seriesOf(conditions))}
        )
        select id
        from (${hitsOfText(conditions, text)}
        ) by_text
        where not (select many from named)
        union all
        select id
        from (${hitsOfTag(conditions, tag, [text.fits])}
        ) by_tag
        where (select many from named)`

/** A job may fit a text in more than one way. */
const UNION = `
        union`

const hitsOfSeries = (conditions: Conditions): string => `
        select j.id
        from smartqueue.series s
        cross join lateral (
          select j.id
          from smartqueue.jobs j
          where ${all([...ofSeriesS(conditions), ...conditions.traits])}
          offset 0
        ) j
        where ${all(seriesOf(conditions))}`

const hitsOfTag = (conditions: Conditions, tag: string, also: string[] = []): string => `
        select j.id
        from smartqueue.tagged_jobs($1::uuid, ${tag}) as t (id)
        cross join lateral (
          select *
          from smartqueue.jobs
          where org_id = $1::uuid
            and id = t.id
          offset 0
        ) j
        where ${all([...conditions.series('j'), ...ofOrganisation(conditions), ...conditions.traits, ...also])}`

/** What the text means, if it is not a part of the name. */
const otherHits = (conditions: Conditions, text: TextCondition): string[] => [
  hitsOfTag(conditions, text.tag),
  `
        select j.id
        from smartqueue.jobs j
        where ${all([...conditions.series('j'), ...ofOrganisation(conditions), ...conditions.traits, `j.id = ${text.id}`])}`,
]

/** A page of jobs with a text: as many of its series as it can hold, and all that have it as their tag or id. */
export const searchTexts = (conditions: Conditions): string => {
  const others = conditions.text ? otherHits(conditions, conditions.text) : []
  return `
      select id
      from (
        select id
        from (${searchSeries(conditions)}
        ) named${UNION}${others.join(UNION)}
      ) hit
      order by id desc
      limit $3::int`
}

/**
 * A page can only come from as many series as it has rows: those whose newest job is newest. So series with nothing
 * on the page cost one look at the index each.
 */
export const searchSeries = (conditions: Conditions): string => {
  const ofSeries = all(ofSeriesS(conditions))
  return `
      with named as materialized (
        select s.id
        from smartqueue.series s
        where ${all(seriesOf(conditions))}
      ),
      newest as materialized (
        select s.id
        from named s
        cross join lateral (
          select j.id
          from smartqueue.jobs j
          where ${ofSeries}
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
        from smartqueue.jobs j
        where ${ofSeries}
        order by j.id desc
        limit $3::int
      ) j
      order by j.id desc
      limit $3::int`
}

const seriesOf = ({ series, text }: Conditions): string[] => [
  's.org_id = $1::uuid',
  ...series('s'),
  ...(text ? [text.isNamed('s')] : []),
]

const inTime = ({ range, time }: Conditions): string[] => ['j.id < $2::uuid', ...range('j.id'), ...time]

export const ofOrganisation = (conditions: Conditions): string[] => [
  'j.org_id = $1::uuid',
  ...inTime(conditions),
]

/** The series is one of the organisation's: to ask for that again would only mislead the planner. */
const ofSeriesS = (conditions: Conditions): string[] => [...inTime(conditions), 'j.series_id = s.id']

export const all = (conditions: string[]): string =>
  conditions.join(`
        and `)
