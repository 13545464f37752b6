import type { QuotaExceeded } from '../../db/queue/submit.ts'
import { type Quota, quotaInWords } from '../../db/rules/quotas.ts'
import { ProblemError } from '../http/problem.ts'

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
  new ProblemError('quota-exceeded', 'The organisation has used up its bytes of payload within a day.', {
    headers: { 'retry-after': '3600' },
  })

export const quotaExceeded = (detail: QuotaExceeded['detail']): ProblemError => {
  const { quota, limit, used, retry_after } = detail
  const window = WINDOW_SECONDS[quota]
  return new ProblemError('quota-exceeded', `${quotaInWords(detail)} Nothing was submitted.`, {
    headers: {
      'retry-after': String(retry_after),
      'ratelimit-policy': `"${quota}";q=${limit}${window ? `;w=${window}` : ''}`,
      ratelimit: `"${quota}";r=${Math.max(0, limit - used)};t=${retry_after}`,
    },
  })
}
