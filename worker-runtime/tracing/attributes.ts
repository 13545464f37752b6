import type { Attributes } from '@opentelemetry/api'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import type { Outcome } from '../outcome.ts'
import type { FetchSpan } from './job-tracing.ts'

/** What spans say, by OpenTelemetry's conventions for messaging and HTTP as far as they fit. docs/tracing.md lists it. */

const SYSTEM = 'smartqueue'

export const ofClaim = (jobs: number, workerId: string): Attributes => ({
  'messaging.system': SYSTEM,
  'messaging.operation.type': 'receive',
  'messaging.operation.name': 'claim',
  'messaging.batch.message_count': jobs,
  'smartqueue.worker.id': workerId,
})

export const ofJob = (job: ClaimedJob, workerId: string | undefined): Attributes => ({
  'messaging.system': SYSTEM,
  'messaging.operation.type': 'process',
  'messaging.operation.name': 'execute',
  'messaging.destination.name': job.type,
  'messaging.message.id': job.job_id,
  'smartqueue.org.id': job.org_id,
  'smartqueue.job.id': job.job_id,
  'smartqueue.job.type': job.type,
  'smartqueue.job.name': job.name,
  'smartqueue.job.attempt': job.attempt,
  'smartqueue.job.age_ms': Math.max(0, Date.now() - submittedAtMs(job.job_id)),
  ...(job.trace && { 'smartqueue.job.predicted_ms': job.trace.predicted_ms }),
  ...(workerId !== undefined && { 'smartqueue.worker.id': workerId }),
})

/** The id of a job begins with when it was made. */
const submittedAtMs = (jobId: string): number => Number.parseInt(jobId.replaceAll('-', '').slice(0, 12), 16)

/** Not the path, which may be secret. */
export const ofFetch = (fetch: FetchSpan, failed: string | undefined): Attributes => ({
  'http.request.method': fetch.method,
  'server.address': fetch.host,
  'server.port': fetch.port,
  'url.scheme': fetch.scheme,
  ...(fetch.status !== undefined && { 'http.response.status_code': fetch.status }),
  ...(failed !== undefined && { 'error.type': failed }),
})

export const outcomeName = (outcome: Outcome): string => {
  switch (outcome.kind) {
    case 'done':
      return 'completed'
    case 'released':
      return 'given_back'
    case 'lost':
      return outcome.cancelled ? 'cancelled' : 'lost'
    case 'snoozed':
    case 'failed':
      return outcome.kind
  }
}
