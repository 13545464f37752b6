import type { Query } from '../query.ts'
import { utf8Bytes } from '../rules/utf8-bytes.ts'
import type { NewJob } from './job-fields.ts'
import { columnsOf } from './kinds.ts'
import type { SubmitAnswer, Submitter } from './submit.ts'

/** Commits one job without parents. See `db/queue/submit-job.sql`. */
export const submitJob = (
  job: NewJob,
  { submitter, keys, charged }: { submitter: Submitter; keys: string | null; charged: boolean },
): Query<SubmitAnswer> => {
  const { id, traceparent, prediction } = job
  const payload = JSON.stringify(job.payload)
  const columns = JSON.stringify({
    id,
    traceparent,
    promised_wait_ms: prediction?.promisedWaitMs,
    ...columnsOf(job),
  })
  return {
    name: 'submit-job',
    text: `
      select smartqueue.submit_job(
        p_org => $1::uuid, p_user => $2::uuid, p_session => $3::uuid, p_key => $4::uuid, p_secret => $5::text,
        p_job => $6::jsonb, p_bytes => $7::bigint, p_sample => $8::text, p_idempotency => $9::jsonb,
        p_charged => $10::boolean
      ) as answer`,
    values: [
      submitter.orgId,
      submitter.userId,
      submitter.sessionId ?? null,
      submitter.keyId ?? null,
      submitter.secret ?? null,
      `{"payload":${payload},${columns.slice(1)}`,
      utf8Bytes(payload),
      prediction?.sample ?? null,
      keys,
      charged,
    ],
  }
}
