import { JobError } from '../../handler-api.ts'

/** What the server answers, with its SQLSTATE. */
export type DatabaseError = Error & { readonly code: string; readonly detail?: string }

export const isDatabaseError = (error: unknown): error is DatabaseError =>
  error instanceof Error &&
  !(error instanceof JobError) &&
  'code' in error &&
  /^[0-9A-Z]{5}$/.test(String(error.code))

/** The job's own mistake, a wrong name or value, stays one; what the server could not do now, it may do later. */
export function refuseStatement(what: string, error: DatabaseError): JobError {
  const detail = error.detail ? ` (${error.detail})` : ''
  return new JobError('database_error', `${what}: ${error.message}${detail} [${error.code}]`, {
    permanent: LASTING.test(error.code),
    cause: error,
  })
}

/** Features, cardinality, data, constraints, read-only, privileges, syntax and names. */
const LASTING = /^(0A|21|22|23|25006|28|2F|3[BDF]|42|44)/
