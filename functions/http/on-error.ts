import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { AppEnv } from '../context.ts'
import { DatabaseUnavailable } from '../database.ts'
import { ProblemError, problemResponse } from './problem.ts'

/** The one way out for every error. What is not a problem of the client's is logged and told without detail. */
export const onError = (error: Error, c: Context<AppEnv>): Response => {
  const requestId = c.get('requestId')
  const problem = toProblem(error)
  if (problem.slug === 'internal-error' || problem.slug === 'database-unavailable') {
    const cause = error.cause instanceof Error ? error.cause.message : undefined
    const line = { level: 'error', request_id: requestId, path: c.req.path, error: error.message, cause }
    console.error(JSON.stringify(line))
  }
  return problemResponse(problem, requestId)
}

/** Characters of the request that an answer repeats at most. */
const MAX_ECHO = 200

export const notFound = (c: Context<AppEnv>): Response =>
  problemResponse(
    new ProblemError('not-found', `There is no ${c.req.method} ${c.req.path.slice(0, MAX_ECHO)}. See /docs.`),
    c.get('requestId'),
  )

const toProblem = (error: Error): ProblemError => {
  if (error instanceof ProblemError) return error
  if (error instanceof DatabaseUnavailable) {
    return new ProblemError('database-unavailable', 'Try again in a few seconds.', {
      headers: { 'retry-after': '2' },
    })
  }
  if (error instanceof HTTPException && error.status === 400) {
    return new ProblemError('malformed-body', error.message)
  }
  return new ProblemError('internal-error', 'Quote the request id if you report it.')
}
