import type { QueryValue } from '../query.ts'
import type { JobState } from '../rules/job-states.ts'
import type { Priority } from '../rules/priority.ts'
import { uuidV7Floor } from '../rules/uuid-v7.ts'

export type JobFilter = {
  statuses?: readonly JobState[] | undefined
  type?: string | undefined
  name?: string | undefined
  tag?: string | undefined
  priority?: Priority | undefined
  createdBy?: string | undefined
  createdAfter?: Date | undefined
  createdBefore?: Date | undefined
  /** Groups failed jobs by their error; only with the status `failed`. */
  fingerprint?: string | undefined
}

/** A filter as SQL. */
export type Conditions = {
  /** On the id, whatever the column is called. */
  id: (column: string) => string[]
  /** On `streams s`. Also true of its jobs. */
  stream: string[]
  /** On `jobs j`. */
  job: string[]
  /** On the table `q` that holds the jobs of a state. */
  place: string[]
}

/** An id is made a moment before its row. The clocks of two machines may be this far apart. */
const SLACK_MS = 60_000

/** `take` makes a parameter of a value. */
export const conditionsOf = (filter: JobFilter, take: (value: QueryValue) => string): Conditions => {
  const { type, name, tag, priority, createdBy, createdAfter, createdBefore, fingerprint } = filter
  const stream: string[] = []
  const job: string[] = []
  const range: ((column: string) => string)[] = []
  if (type !== undefined) stream.push(`type = ${take(type)}::text`)
  if (name !== undefined) stream.push(`name = ${take(name)}::text`)
  // What a partial index leaves out is said again: the planner does not conclude it.
  if (tag !== undefined) job.push(`j.tags @> array[${take(tag)}::text]`, `j.tags <> '{}'`)
  if (priority !== undefined) job.push(`j.priority = ${take(priority)}::text`)
  if (priority !== undefined && priority !== 'normal') job.push(`j.priority <> 'normal'`)
  if (createdBy !== undefined) job.push(`j.created_by = ${take(createdBy)}::uuid`)
  if (createdAfter) {
    const floor = take(uuidV7Floor(createdAfter.getTime() - SLACK_MS))
    range.push((column) => `${column} >= ${floor}::uuid`)
    job.push(`j.created_at >= ${take(createdAfter.toISOString())}::timestamptz`)
  }
  if (createdBefore) {
    const ceiling = take(uuidV7Floor(createdBefore.getTime() + SLACK_MS))
    range.push((column) => `${column} < ${ceiling}::uuid`)
    job.push(`j.created_at < ${take(createdBefore.toISOString())}::timestamptz`)
  }
  return {
    id: (column) => range.map((bound) => bound(column)),
    stream: stream.map((condition) => `s.${condition}`),
    job: [...stream.map((condition) => `j.${condition}`), ...job],
    place: fingerprint === undefined ? [] : [`q.fingerprint = ${take(fingerprint)}::text`],
  }
}

/** Filters that make the same text have the same shape; it is part of the statement's name. */
export const shapeOf = (filter: JobFilter): string => {
  const given = Object.entries(filter).flatMap(([key, value]) => (value === undefined ? [] : [key]))
  const fixed = [...(filter.statuses ?? []), ...(filter.priority === 'normal' ? ['normal'] : [])]
  return [...given.sort(), ...fixed].map((part) => `-${part}`).join('')
}
