import type { Run } from '../db/query.ts'
import { createKeyRing, type KeyRing } from './auth/key-ring.ts'
import { parseBindings, type RawBindings } from './bindings.ts'
import { createDatabase } from './database.ts'
import { logFailure } from './http/background.ts'
import { createJobTypes, type JobTypes } from './jobs/job-types.ts'
import { createSubmitter, type Submitter } from './jobs/submitter.ts'

/** What one isolate keeps between requests. */
export type Services = {
  readonly run: Run
  readonly keys: KeyRing
  readonly jobTypes: JobTypes
  readonly submitter: Submitter
}

const isolates = new WeakMap<RawBindings, Services>()

export const servicesFor = (raw: RawBindings): Services => {
  const existing = isolates.get(raw)
  if (existing) return existing
  const bindings = parseBindings(raw)
  const run = createDatabase({ url: bindings.DATABASE_URL, gateway: bindings.NEON_GATEWAY })
  const services = {
    run,
    keys: createKeyRing(bindings.AUTH_KEYS.keys),
    jobTypes: createJobTypes(run),
    submitter: createSubmitter({ run, onError: logFailure }),
  }
  isolates.set(raw, services)
  return services
}
