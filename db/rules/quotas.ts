/** What an organisation may use. Null: as much as it wants. */
export const QUOTAS = [
  'submissions_per_minute',
  'queued_jobs',
  'running_jobs',
  'payload_bytes_per_day',
] as const

export type Quota = (typeof QUOTAS)[number]

/** An organisation's part of the workers' time, relative to the weights of the others that have work. */
export const WEIGHT = { min: 0.01, max: 100 } as const

export const WEIGHT_FAULT = `must be a number from ${WEIGHT.min} to ${WEIGHT.max}`

const WHAT: Record<Quota, string> = {
  submissions_per_minute: 'jobs submitted within a minute',
  queued_jobs: 'jobs queued or running',
  running_jobs: 'jobs running',
  payload_bytes_per_day: 'bytes of payload within a day',
}

/** Why there is no room for what is wanted. */
export const quotaInWords = (over: { quota: Quota; limit: number; used: number; wanted: number }): string => {
  const { quota, limit, used, wanted } = over
  const number = (value: number): string => value.toLocaleString('en')
  const why =
    wanted > limit ? `this alone is ${number(wanted)}: send less at once` : `and has ${number(used)}`
  return `The organisation may have ${number(limit)} ${WHAT[quota]}, ${why}.`
}
