import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { membershipEnded } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { DatabaseUnavailable, NotEntered } from '../database-errors.ts'
import { RowSecurityBroken } from '../row-level-security.ts'
import type { RequestTrace } from '../tracing/request-trace.ts'
import { parseTraceparent } from '../tracing/traceparent.ts'
import { log } from './log.ts'
import { ProblemError, problemResponse } from './problem.ts'

const LOGGED = ['internal-error', 'database-unavailable', 'outcome-unknown', 'not-ready'] as const

/** The one way out for every error. What is not a problem of the client's is logged and told without detail. */
export const onError = (error: Error, c: Context<AppEnv>): Response => {
  const requestId = c.get('requestId')
  const problem = toProblem(error, c)
  if (LOGGED.some((slug) => slug === problem.slug)) {
    const cause = error.cause instanceof Error ? error.cause.message : undefined
    // None, if the configuration cannot be used.
    const trace = parseTraceparent((c.get('trace') as RequestTrace | undefined)?.traceparent)
    log('error', 'a request failed', {
      request_id: requestId,
      trace_id: trace?.traceId,
      span_id: trace?.spanId,
      path: c.req.path,
      error: error.message,
      cause,
    })
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

const toProblem = (error: Error, c: Context<AppEnv>): ProblemError => {
  if (error instanceof ProblemError) return error
  if (error instanceof DatabaseUnavailable) return unavailable(error, c)
  if (error instanceof NotEntered) {
    return error.reason === 'forbidden'
      ? new ProblemError('forbidden', 'Your role in the organisation does not allow it.')
      : membershipEnded()
  }
  if (error instanceof RowSecurityBroken) {
    return new ProblemError(
      'not-ready',
      'The system refuses to work with this database. Its operator finds why in the log.',
    )
  }
  if (error instanceof HTTPException && error.status === 400) {
    return new ProblemError('malformed-body', error.message)
  }
  return new ProblemError('internal-error', 'Quote the request id if you report it.')
}

const RETRY = { headers: { 'retry-after': '2' } }

/** A client may repeat a request that was not committed. If the outcome is unknown, it must check first. */
const unavailable = ({ message, rolledBack }: DatabaseUnavailable, c: Context<AppEnv>): ProblemError => {
  if (rolledBack || c.req.method === 'GET') {
    const state = c.req.method === 'GET' ? '' : ' Nothing was committed.'
    return new ProblemError('database-unavailable', `${message}${state} Try again in a few seconds.`, RETRY)
  }
  const remedy = c.req.header('idempotency-key')
    ? 'Repeat it with the same Idempotency-Key; nothing will be submitted twice.'
    : 'Check before you repeat it. A submission with an Idempotency-Key can be repeated safely.'
  return new ProblemError(
    'outcome-unknown',
    `The request may or may not have been committed. ${remedy}`,
    RETRY,
  )
}
