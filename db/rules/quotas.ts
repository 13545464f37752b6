/** What an organisation may use. Null: as much as it wants. */
export const QUOTAS = [
  'submissions_per_minute',
  'queued_jobs',
  'running_jobs',
  'payload_bytes_per_day',
] as const

export type Quota = (typeof QUOTAS)[number]
