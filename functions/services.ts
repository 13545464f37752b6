import { enter } from '../db/queries/scope.ts'
import { createTokenVerifier, type TokenVerifier } from './auth/access-token.ts'
import { type ApiKeys, createApiKeys } from './auth/api-key.ts'
import { createKeyRing, type KeyRing } from './auth/key-ring.ts'
import { type Autoscale, createAutoscale } from './autoscale/snapshot.ts'
import { type Assets, parseBindings, type RawBindings } from './bindings.ts'
import { createDatabase, type Database } from './database.ts'
import { hideSecrets, logFailure } from './http/log.ts'
import { createJobTypes, type JobTypes } from './jobs/job-types.ts'
import { createReadGroups, type ReadGroups } from './jobs/read-groups.ts'
import { createSubmitter, type Submitter } from './jobs/submitter.ts'
import { createEdgeTotals, type EdgeTotals } from './metrics/edge-totals.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { createJobPredictions, type JobPredictions } from './prediction/job-predictions.ts'
import { createOrgQueues, type OrgQueues } from './prediction/org-queues.ts'
import { guardRowSecurity } from './row-level-security.ts'
import type { RegistrationMode } from './settings.ts'
import { createNudger, type Nudger } from './stream/nudger.ts'
import { type StreamObjects, streamOf } from './stream/object-link.ts'
import { createTracing, type Tracing } from './tracing/tracing.ts'
import { createRejectionLimit, type RejectionLimit } from './webhooks/rejection-limit.ts'
import { createSourceCache, type SourceCache } from './webhooks/source-cache.ts'

/** What one isolate keeps between requests. */
export type Services = {
  readonly database: Database
  readonly keys: KeyRing
  readonly tokens: TokenVerifier
  readonly apiKeys: ApiKeys
  readonly jobTypes: JobTypes
  readonly submitter: Submitter
  readonly predictions: JobPredictions
  readonly queues: OrgQueues
  readonly reads: ReadGroups
  readonly metrics: Metrics
  readonly autoscale: Autoscale
  readonly edgeTotals: EdgeTotals
  /** Who operates the system has it. Undefined: nobody needs one. */
  readonly operationsToken: string | undefined
  readonly webhookSources: SourceCache
  readonly webhookRejections: RejectionLimit
  readonly streams: { readonly objects: StreamObjects; readonly nudger: Nudger }
  readonly assets: Assets
  /** Origins whose pages may call the API. */
  readonly corsOrigins: readonly string[]
  readonly registration: RegistrationMode
  /** How many organisations an account may create. */
  readonly orgsPerAccount: number
  /** If undefined, the client's address is unknown. */
  readonly clientAddressHeader: string | undefined
  /** Undefined: nothing is traced. */
  readonly tracing: Tracing | undefined
}

const isolates = new WeakMap<RawBindings, Services>()

export const servicesFor = (raw: RawBindings): Services => {
  const existing = isolates.get(raw)
  if (existing) return existing
  const bindings = parseBindings(raw)
  hideSecrets(bindings)
  const database = guardRowSecurity(
    createDatabase({ url: bindings.DATABASE_URL, gateway: bindings.NEON_GATEWAY }),
  )
  const keys = createKeyRing(bindings.AUTH_KEYS.keys)
  const queues = createOrgQueues()
  const predictions = createJobPredictions(database.run, queues)
  const services = {
    database,
    keys,
    tokens: createTokenVerifier(keys),
    apiKeys: createApiKeys(database),
    jobTypes: createJobTypes(database.run),
    submitter: createSubmitter({
      run: database.run,
      runAs: (member) => database.after(enter(member, { leastRole: 'user' })),
      onError: logFailure,
      onRefusedPrediction: predictions.refused,
    }),
    predictions,
    queues,
    reads: createReadGroups(),
    metrics: createMetrics(database),
    autoscale: createAutoscale(database.run),
    edgeTotals: createEdgeTotals(database.run),
    operationsToken: bindings.OPERATIONS_TOKEN,
    webhookSources: createSourceCache(database),
    webhookRejections: createRejectionLimit(),
    streams: {
      objects: bindings.JOB_STREAM,
      nudger: createNudger((orgId) => streamOf(bindings.JOB_STREAM, orgId).nudge(), logFailure),
    },
    assets: bindings.ASSETS,
    corsOrigins: bindings.CORS_ORIGINS,
    registration: bindings.SMARTQUEUE_REGISTRATION,
    orgsPerAccount: bindings.SMARTQUEUE_ORGS_PER_ACCOUNT,
    clientAddressHeader: bindings.SMARTQUEUE_CLIENT_ADDRESS_HEADER,
    tracing: createTracing(bindings),
  }
  isolates.set(raw, services)
  return services
}
