import type { z } from '@hono/zod-openapi'
import { type JobRow, submitJobs } from '../../db/queries/jobs.ts'
import { rankOf } from '../../db/rules/priority.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { Principal } from '../auth/access-token.ts'
import { membershipEnded } from '../auth/require-auth.ts'
import { ProblemError } from '../http/problem.ts'
import { invalidRequest } from '../http/validation.ts'
import type { Services } from '../services.ts'
import type { newJob } from './schemas.ts'

type JobRequest = z.output<typeof newJob>

/** Checks the payload against its handler's schema and commits the job: one round trip to the database. */
export const submitJob = async (
  services: Services,
  principal: Principal,
  request: JobRequest,
): Promise<JobRow> => {
  await checkPayload(services, request)
  const { name, type, payload, priority, tags, retry } = request
  const timeout_seconds = request.timeout_seconds ?? null
  const runAt = request.run_at ? new Date(request.run_at) : null
  const job = { id: uuidV7(), name, type, payload, priority, tags, timeout_seconds, ...retry }
  const [submitted] = await services.run(
    submitJobs({
      orgId: principal.org_id,
      userId: principal.user_id,
      jobs: [{ ...job, rank: rankOf(priority), run_at: runAt?.toISOString() ?? null }],
    }),
  )
  if (!submitted) throw membershipEnded()
  return {
    ...job,
    org_id: principal.org_id,
    created_by: principal.user_id,
    status: submitted.status,
    run_at: runAt,
    attempts: 0,
    worker_id: null,
    result: null,
    error: null,
    created_at: submitted.created_at,
    started_at: null,
    finished_at: null,
  }
}

const checkPayload = async ({ jobTypes }: Services, request: JobRequest): Promise<void> => {
  const type = await jobTypes.find(request.type)
  if (!type) {
    const known = jobTypes.names().join(', ') || 'none yet: no worker has started'
    throw new ProblemError(
      'unknown-job-type',
      `"${request.type}" is not a type that workers handle (${known}).`,
      {
        errors: [{ in: 'body', pointer: '#/type', detail: 'is not a known type' }],
      },
    )
  }
  const checked = type.payload.safeParse(request.payload)
  if (checked.success) return
  const issues = checked.error.issues.map((issue) => {
    const meant = issue.code === 'invalid_format' ? type.describe(issue.path) : undefined
    return { ...issue, message: meant ? `must be ${meant}` : issue.message, path: ['payload', ...issue.path] }
  })
  throw invalidRequest('body', issues)
}
