import { type Hook, OpenAPIHono } from '@hono/zod-openapi'
import { z } from 'zod'
import type { AppEnv } from '../context.ts'
import { ProblemError, type ProblemReason, type ProblemSlug, toPointer } from './problem.ts'
import { findUnstorable } from './storable.ts'

// Said of a field, as in "#/name is required".
z.config({
  customError: (issue) => {
    if (issue.code === 'invalid_format' && issue.format === 'regex') return 'has the wrong form'
    if (issue.code !== 'invalid_type') return undefined
    if (issue.input === undefined) return 'is required'
    return issue.expected === 'int' ? 'must be a whole number' : `must be of type ${issue.expected}`
  },
})

/** A router whose validation failures are problems. Every feature makes its routes on one. */
export const createRouter = (): OpenAPIHono<AppEnv> =>
  new OpenAPIHono<AppEnv>({ strict: false, defaultHook: refuseInvalid })

const refuseInvalid: Hook<unknown, AppEnv, string, void> = (result) => {
  if (result.success) {
    if (result.target === 'query') refuseUnstorable(result.data)
    return
  }
  // A path that cannot name a resource names none.
  if (result.target === 'param') throw new ProblemError('not-found', 'Nothing has this id.')
  const place = result.target === 'query' || result.target === 'header' ? result.target : 'body'
  throw invalidRequest(place, result.error.issues)
}

/** Postgres text cannot contain NUL. Bodies are checked when they are read. */
const refuseUnstorable = (query: unknown): void => {
  const found = findUnstorable(query, MAX_QUERY_DEPTH)
  if (found)
    throw problemAt('invalid-request', [{ in: 'query', pointer: found.pointer, detail: found.detail }])
}

/** A parameter is parsed as a value, a list or an object of values. */
const MAX_QUERY_DEPTH = 3

export const invalidRequest = (
  place: ProblemReason['in'],
  issues: readonly z.core.$ZodIssue[],
): ProblemError =>
  problemAt(
    'invalid-request',
    issues.flatMap((issue) => toReasons(place, issue)),
  )

/** A batch of a thousand jobs can be wrong in thousands of places: nobody reads on after these. */
const MAX_REASONS = 50

/** A problem whose detail is its first reason and how many more there are. */
export const problemAt = (slug: ProblemSlug, reasons: readonly ProblemReason[]): ProblemError => {
  const [first] = reasons
  const detail = first ? `${first.pointer} ${first.detail}` : 'The request does not fit.'
  const more = reasons.length > 1 ? ` (and ${reasons.length - 1} more)` : ''
  return new ProblemError(slug, detail + more, { errors: reasons.slice(0, MAX_REASONS) })
}

const toReasons = (place: ProblemReason['in'], issue: z.core.$ZodIssue): ProblemReason[] => {
  const { path } = issue
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      in: place,
      pointer: toPointer([...path, key]),
      detail: place === 'query' ? 'is not a known parameter' : 'is not a known field',
    }))
  }
  return [{ in: place, pointer: toPointer(path), detail: lowerFirst(issue.message) }]
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
