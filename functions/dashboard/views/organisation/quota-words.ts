import type { Quota } from '../../../../db/rules/quotas.ts'
import { bytes, counted } from '../../ui/format.ts'

const MIB = 2 ** 20
const inJobs = (value: number): string => counted(value, 'job')

/** What each quota counts, how its numbers read, and how they are written down: `unit` is one step of what is typed. */
export const QUOTA_WORDS: Record<
  Quota,
  { label: string; field: string; text: (value: number) => string; unit: number }
> = {
  submissions_per_minute: {
    label: 'Submitted within a minute',
    field: 'Jobs submitted within a minute',
    text: inJobs,
    unit: 1,
  },
  payload_bytes_per_day: {
    label: 'Payloads within a day',
    field: 'Payloads within a day, MiB',
    text: bytes,
    unit: MIB,
  },
  queued_jobs: {
    label: 'Queued or running',
    field: 'Jobs queued or running',
    text: inJobs,
    unit: 1,
  },
  running_jobs: {
    label: 'Running',
    field: 'Jobs running',
    text: inJobs,
    unit: 1,
  },
}

/** What stands in a field: empty is no limit. */
export const typedOf = (quota: Quota, limit: number | null): string =>
  limit === null ? '' : String(limit / QUOTA_WORDS[quota].unit)

/** A limit from what was typed. Undefined: it is none. */
export const limitOf = (quota: Quota, typed: string): number | null | undefined => {
  const text = typed.trim()
  if (text === '') return null
  const limit = Math.round(Number(text) * QUOTA_WORDS[quota].unit)
  return Number.isSafeInteger(limit) && limit >= 0 ? limit : undefined
}
