import { type AutoscaleRow, readAutoscale, STALE_SECONDS } from '../../db/queries/autoscale.ts'
import type { Run } from '../../db/query.ts'
import { ProblemError } from '../http/problem.ts'

export type Autoscale = {
  /** The newest snapshot. Throws the problem that there is none by which anything may be scaled. */
  read(): Promise<AutoscaleRow>
}

/** Anybody may ask, and the database is asked only this often. */
const FRESH_MS = 1_000

export const createAutoscale = (run: Run, now: () => number = Date.now): Autoscale => {
  let known: { row: AutoscaleRow; readAtMs: number } | undefined
  let askedAtMs = Number.NEGATIVE_INFINITY

  return {
    read: async () => {
      if (!known || now() - askedAtMs >= FRESH_MS) {
        // Before asking: who comes meanwhile, or after a failure, gets the one before, which ages all the same.
        const readAtMs = now()
        askedAtMs = readAtMs
        const [row] = await run(readAutoscale())
        known = row && { row, readAtMs }
      }
      if (!known) throw unknown('No leader has taken a snapshot of the queue yet. Start a worker.')
      const age_seconds = known.row.age_seconds + (now() - known.readAtMs) / 1_000
      if (age_seconds <= STALE_SECONDS) return { ...known.row, age_seconds }
      throw unknown(
        `The newest snapshot of the queue is ${Math.round(age_seconds)} seconds old: no leader takes any. ` +
          'See that a worker runs and reaches the database, and leave the number of workers as it is.',
      )
    },
  }
}

const unknown = (detail: string): ProblemError =>
  new ProblemError('autoscale-unknown', detail, { headers: { 'retry-after': '5' } })
