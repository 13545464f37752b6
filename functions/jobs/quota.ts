import type { QuotaExceeded } from '../../db/queries/submission.ts'
import type { Quota } from '../../db/rules/quotas.ts'
import { ProblemError } from '../http/problem.ts'

const WHAT: Record<Quota, string> = {
  submissions_per_minute: 'jobs submitted within a minute',
  queued_jobs: 'jobs queued or running',
  running_jobs: 'jobs running',
  payload_bytes_per_day: 'bytes of payload within a day',
}

const WINDOW_SECONDS: Partial<Record<Quota, number>> = {
  submissions_per_minute: 60,
  payload_bytes_per_day: 86_400,
}

/** A retry adds to the queue, too. */
export const queueFull = (): ProblemError =>
  new ProblemError('quota-exceeded', 'The organisation has as many jobs queued or running as it may.', {
    headers: { 'retry-after': '10' },
  })

/** What could not be kept beside jobs. An hour later a part of the day is over. */
export const bytesUsedUp = (): ProblemError =>
  new ProblemError('quota-exceeded', `The organisation has used up its ${WHAT.payload_bytes_per_day}.`, {
    headers: { 'retry-after': '3600' },
  })

export const quotaExceeded = (detail: QuotaExceeded['detail']): ProblemError => {
  const { quota, limit, used, wanted, retry_after } = detail
  const number = (value: number): string => value.toLocaleString('en')
  const window = WINDOW_SECONDS[quota]
  const why =
    wanted > limit ? `this alone is ${number(wanted)}: send less at once` : `and has ${number(used)}`
  return new ProblemError(
    'quota-exceeded',
    `The organisation may have ${number(limit)} ${WHAT[quota]}, ${why}. Nothing was submitted.`,
    {
      headers: {
        'retry-after': String(retry_after),
        'ratelimit-policy': `"${quota}";q=${limit}${window ? `;w=${window}` : ''}`,
        ratelimit: `"${quota}";r=${Math.max(0, limit - used)};t=${retry_after}`,
      },
    },
  )
}
