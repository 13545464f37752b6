import { type AutoscaleRow, readAutoscale, STALE_SECONDS } from '../../db/queries/autoscale.ts'
import type { Run } from '../../db/query.ts'

/** What is known of the work to scale for. Without a fresh snapshot nothing may be scaled, and `because` says why. */
export type AutoscaleLook =
  | { readonly kind: 'fresh'; readonly row: AutoscaleRow }
  | { readonly kind: 'unusable'; readonly because: string; readonly ageSeconds?: number }
  | { readonly kind: 'away'; readonly because: string }

export type LookAtAutoscale = () => Promise<AutoscaleLook>

/** Several that ask at about the same time (an autoscaler asks for three metrics) share an answer. */
const SHARED_MS = 1_000
/** Probes, scrapes and autoscalers do not wait longer. */
const ANSWER_MS = 3_000

/** Looks at the leader's snapshot when somebody asks, and never throws: that the database is away is an answer too. */
export const createAutoscaleLook = (options: {
  run: Run
  now: () => number
  onError: (error: Error) => void
}): LookAtAutoscale => {
  let latest: Promise<AutoscaleLook> | undefined
  let askedAtMs = 0

  const look = async (): Promise<AutoscaleLook> => {
    try {
      const [row] = await withinMs(ANSWER_MS, options.run(readAutoscale()))
      return judge(row)
    } catch (error) {
      options.onError(error as Error)
      return { kind: 'away', because: 'The database does not answer.' }
    }
  }

  return () => {
    if (latest && options.now() - askedAtMs < SHARED_MS) return latest
    askedAtMs = options.now()
    latest = look()
    return latest
  }
}

const judge = (row: AutoscaleRow | undefined): AutoscaleLook => {
  if (!row)
    return { kind: 'unusable', because: 'There is no snapshot of the work yet: no worker has led so far.' }
  const { age_seconds: ageSeconds } = row
  if (ageSeconds <= STALE_SECONDS) return { kind: 'fresh', row }
  const because = `The newest snapshot of the work is ${Math.round(ageSeconds)} s old, more than ${STALE_SECONDS}: no worker leads.`
  return { kind: 'unusable', because, ageSeconds }
}

const withinMs = async <Result>(ms: number, work: Promise<Result>): Promise<Result> => {
  let timer: NodeJS.Timeout | undefined
  const timeUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The database did not answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, timeUp])
  } finally {
    clearTimeout(timer)
  }
}
