import type { ContentfulStatusCode } from 'hono/utils/http-status'

/** Every error that a client can meet: slug, status and title. The one table behind all problem responses. */
export const PROBLEMS = {
  'malformed-body': { status: 400, title: 'The body cannot be read' },
  unauthenticated: { status: 401, title: 'Sign in first' },
  'wrong-credentials': { status: 401, title: 'Username or password is wrong' },
  'refresh-token-invalid': { status: 401, title: 'The refresh token is not valid' },
  'webhook-rejected': { status: 401, title: 'The delivery is not from whom it should be' },
  forbidden: { status: 403, title: 'Not allowed' },
  'registration-closed': { status: 403, title: 'Registration is not open' },
  'not-found': { status: 404, title: 'Not found' },
  'username-taken': { status: 409, title: 'The username is taken' },
  'last-org-admin': { status: 409, title: 'An organisation needs an org_admin' },
  'limit-reached': { status: 409, title: 'Limit reached' },
  'already-member': { status: 409, title: 'Already a member of the organisation' },
  'endpoint-exists': { status: 409, title: 'The URL is an endpoint already' },
  'already-finished': { status: 409, title: 'The job has already finished' },
  'not-retryable': { status: 409, title: 'The job cannot be retried now' },
  'not-replayable': { status: 409, title: 'The delivery cannot be replayed' },
  'body-too-large': { status: 413, title: 'The body is too large' },
  'unsupported-media-type': { status: 415, title: 'Send JSON' },
  'invalid-request': { status: 422, title: 'The request does not fit' },
  'unknown-job-type': { status: 422, title: 'No worker handles this type' },
  'unknown-dependency': { status: 422, title: 'A job that it depends on does not exist' },
  'failed-dependency': { status: 422, title: 'A job that it depends on has failed or was cancelled' },
  'dependency-cycle': { status: 422, title: 'Jobs depend on each other in a circle' },
  'unknown-user': { status: 422, title: 'Nobody has this name' },
  'idempotency-key-reused': { status: 422, title: 'The idempotency key was used for something else' },
  'upgrade-required': { status: 426, title: 'Open a WebSocket here' },
  'rate-limited': { status: 429, title: 'Too many requests' },
  'quota-exceeded': { status: 429, title: 'A quota of the organisation is used up' },
  'internal-error': { status: 500, title: 'Something broke on our side' },
  'database-unavailable': { status: 503, title: 'The database is unavailable' },
  'outcome-unknown': { status: 503, title: 'The database did not answer' },
  'autoscale-unknown': { status: 503, title: 'There is nothing to scale by' },
  'not-ready': { status: 503, title: 'Not ready to serve' },
} as const satisfies Record<string, { status: ContentfulStatusCode; title: string }>

export type ProblemSlug = keyof typeof PROBLEMS

/** One reason, at one place of the request. `pointer` is a JSON Pointer in fragment form (RFC 6901, 6). */
export type ProblemReason = {
  in: 'body' | 'query' | 'path' | 'header'
  pointer: string
  detail: string
}

/** Thrown anywhere below a route; `onError` turns it into `application/problem+json` (RFC 9457). */
export class ProblemError extends Error {
  readonly slug: ProblemSlug
  readonly errors: readonly ProblemReason[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    slug: ProblemSlug,
    detail: string,
    options: { errors?: readonly ProblemReason[]; headers?: Record<string, string> } = {},
  ) {
    super(detail)
    this.name = 'ProblemError'
    this.slug = slug
    this.errors = options.errors ?? []
    this.headers = options.headers ?? {}
  }
}

export const problemResponse = (problem: ProblemError, requestId: string): Response => {
  const { status, title } = PROBLEMS[problem.slug]
  const body = {
    type: `/docs#problem-${problem.slug}`,
    title,
    status,
    detail: problem.message,
    ...(problem.errors.length > 0 && { errors: problem.errors }),
    request_id: requestId,
  }
  return Response.json(body, {
    status,
    headers: { 'content-type': 'application/problem+json', 'x-request-id': requestId, ...problem.headers },
  })
}

/** `['retry', 'max_attempts']` → `#/retry/max_attempts` */
export const toPointer = (path: readonly PropertyKey[]): string =>
  ['#', ...path.map((key) => String(key).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/')
