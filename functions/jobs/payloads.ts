import { ProblemError, type ProblemReason, toPointer } from '../http/problem.ts'
import { invalidRequest, problemAt } from '../http/validation.ts'
import type { JobType, JobTypes } from './job-types.ts'
import type { JobRequest } from './new-job.ts'
import type { PathOf } from './submission.ts'
import { spellOutUnion } from './union-issues.ts'

/** Refuses types that no worker handles, and payloads that do not fit the schema of their handler. */
export const checkPayloads = async (
  jobTypes: JobTypes,
  requests: readonly Pick<JobRequest, 'type' | 'payload'>[],
  pathOf: PathOf,
): Promise<void> => {
  const types = await checkTypes(jobTypes, requests, pathOf)
  const issues = requests.flatMap((request, job) =>
    payloadIssues(types.get(request.type), request.payload, pathOf(job)),
  )
  if (issues.length > 0) throw invalidRequest('body', issues)
}

/** Refuses types that no worker handles; answers the others. */
export const checkTypes = async (
  jobTypes: JobTypes,
  requests: readonly Pick<JobRequest, 'type'>[],
  pathOf: PathOf,
): Promise<ReadonlyMap<string, JobType | undefined>> => {
  const types = new Map<string, JobType | undefined>()
  for (const { type } of requests) if (!types.has(type)) types.set(type, await jobTypes.find(type))
  const unknown = requests.flatMap(({ type }, job): ProblemReason[] =>
    types.get(type)
      ? []
      : [{ in: 'body', pointer: toPointer([...pathOf(job), 'type']), detail: 'is not a known type' }],
  )
  if (unknown.length > 0) throw unknownType(requests, types, jobTypes, unknown)
  return types
}

const SHELL_IS_OFF = ' Shell jobs are off until the operator sets SMARTQUEUE_SHELL_ALLOW on the workers.'

const unknownType = (
  requests: readonly Pick<JobRequest, 'type'>[],
  types: ReadonlyMap<string, JobType | undefined>,
  jobTypes: JobTypes,
  reasons: ProblemReason[],
): ProblemError => {
  const type = requests.find((request) => !types.get(request.type))?.type
  const known = jobTypes.names().join(', ') || 'none yet: no worker has started'
  const detail = `"${type}" is not a type that workers handle (${known}).${type === 'shell' ? SHELL_IS_OFF : ''}`
  return new ProblemError('unknown-job-type', detail, {
    errors: problemAt('unknown-job-type', reasons).errors,
  })
}

const payloadIssues = (type: JobType | undefined, payload: unknown, path: readonly PropertyKey[]) => {
  const checked = type?.payload.safeParse(payload)
  if (!type || !checked || checked.success) return []
  return checked.error.issues.flatMap(spellOutUnion).map((issue) => {
    const meant = issue.code === 'invalid_format' ? type.describe(issue.path) : undefined
    const message = meant ? `must be ${meant}` : issue.message
    return { ...issue, message, path: [...path, 'payload', ...issue.path] }
  })
}
