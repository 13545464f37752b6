import type { QueryValue } from '../query.ts'
import type { JobState } from '../rules/job-states.ts'
import type { Priority } from '../rules/priority.ts'
import { uuidV7Floor } from '../rules/uuid-v7.ts'

export type JobFilter = {
  statuses?: readonly JobState[] | undefined
  type?: string | undefined
  name?: string | undefined
  tag?: string | undefined
  /** A part of the name, whatever its case; or a tag; or the id. */
  text?: string | undefined
  priority?: Priority | undefined
  createdBy?: string | undefined
  createdAfter?: Date | undefined
  createdBefore?: Date | undefined
  /** Groups failed jobs by their error; only with the status `failed`. */
  fingerprint?: string | undefined
}

/** A filter as SQL. `j` is a row of `jobs`. */
export type Conditions = {
  /** On the type and the name, of `jobs` or of `series`. */
  series: (row: 'j' | 's') => string[]
  /** On `j`, each but the creator served by an index of its own; the tag by that of `tagged_jobs`. */
  traits: string[]
  tag: string | undefined
  text: TextCondition | undefined
  /** Bounds of the id, whatever the column is called, and the exact time on `j`. */
  range: (column: string) => string[]
  time: string[]
  /** On the row `q` that says in which state the job is. */
  place: string[]
}

/** What one line of text may stand for. Each of the three has an index of its own. */
export type TextCondition = {
  tag: string
  /** Null, if the text is no id. */
  id: string
  /** Has it in its name: of `jobs` or of `series`. */
  isNamed: (row: 'j' | 's') => string
  /** Any of them. */
  fits: string
}

/** An id is made a moment before its row. The clocks of two machines may be this far apart. */
const SLACK_MS = 60_000

/** `take` makes a parameter of a value. */
export const conditionsOf = (filter: JobFilter, take: (value: QueryValue) => string): Conditions => {
  const { type, name, tag, text, priority, createdBy, createdAfter, createdBefore, fingerprint } = filter
  const series: string[] = []
  if (type !== undefined) series.push(`type = ${take(type)}::text`)
  if (name !== undefined) series.push(`name = ${take(name)}::text`)
  const traits: string[] = []
  const wantedTag = tag === undefined ? undefined : `${take(tag)}::text`
  if (wantedTag !== undefined) traits.push(`j.tags @> array[${wantedTag}]`)
  const wantedText = text === undefined ? undefined : textCondition(text, take)
  if (priority !== undefined) {
    // What a partial index leaves out is said again: the planner does not conclude it.
    traits.push(
      `j.priority = ${take(priority)}::text${priority === 'normal' ? '' : ` and j.priority <> 'normal'`}`,
    )
  }
  if (createdBy !== undefined) traits.push(`j.created_by = ${take(createdBy)}::uuid`)
  const bounds: string[] = []
  const time: string[] = []
  if (createdAfter) {
    bounds.push(`>= ${take(uuidV7Floor(createdAfter.getTime() - SLACK_MS))}::uuid`)
    time.push(`j.created_at >= ${take(createdAfter.toISOString())}::timestamptz`)
  }
  if (createdBefore) {
    bounds.push(`< ${take(uuidV7Floor(createdBefore.getTime() + SLACK_MS))}::uuid`)
    time.push(`j.created_at < ${take(createdBefore.toISOString())}::timestamptz`)
  }
  return {
    series: (row) => series.map((condition) => `${row}.${condition}`),
    traits,
    tag: wantedTag,
    text: wantedText,
    range: (column) => bounds.map((bound) => `${column} ${bound}`),
    time,
    place: fingerprint === undefined ? [] : [`q.fingerprint = ${take(fingerprint)}::text`],
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Lower case by Unicode, whatever the locale of the database. Not `ilike`: its wildcards would have to be escaped. */
const textCondition = (text: string, take: (value: QueryValue) => string): TextCondition => {
  const tag = `${take(text)}::text`
  const id = `${take(UUID.test(text) ? text : null)}::uuid`
  const lower = (value: string) => `lower(${value} collate "und-x-icu")`
  const isNamed = (row: 'j' | 's') => `strpos(${lower(`${row}.name`)}, ${lower(tag)}) > 0`
  return { tag, id, isNamed, fits: `(${isNamed('j')} or ${tag} = any (j.tags) or j.id = ${id})` }
}

/** Filters that make the same text have the same shape; it is part of the statement's name. */
export const shapeOf = (filter: JobFilter): string => {
  const given = Object.entries(filter).flatMap(([key, value]) => (value === undefined ? [] : [key]))
  const fixed = [...(filter.statuses ?? []), ...(filter.priority === 'normal' ? ['normal'] : [])]
  return [...given.sort(), ...fixed].map((part) => `-${part}`).join('')
}
