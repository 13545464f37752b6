import type { AccuracyValues } from '../../db/queries/learning.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import type { Sample } from '../../functions/prediction/model/sample.ts'

export type AccuracyWindow = {
  add(sample: Sample, log: number): void
  /** Undefined before the first. */
  read(): AccuracyValues | undefined
}

const NEWEST = 2_000
/** Of these it is told whether they are off to one side: what changes shows soon, and a few odd ones do not. */
const DRIFT_OVER = 200

type Judged = { errors: number[]; signed: number; covered: boolean; percentage: number }

/** How good predictions were that were given out, and what each expert alone would have been, over the newest executions. */
export const createAccuracyWindow = (size = NEWEST): AccuracyWindow => {
  const ring: Judged[] = []
  let added = 0
  return {
    add: ({ advice, p50Log, p90Log }, log) => {
      ring[added++ % size] = {
        errors: [p50Log, ...advice.slice(0, EXPERTS.length)].map((predicted) => Math.abs(predicted - log)),
        signed: log - p50Log,
        covered: log <= p90Log,
        percentage: 100 * Math.abs(Math.expm1(p50Log - log)),
      }
    },
    read: () =>
      ring.length === 0
        ? undefined
        : {
            errors: Object.fromEntries(
              ['smartqueue', ...EXPERTS].map((name, n) => [name, mean(ring, ({ errors }) => errors[n] ?? 0)]),
            ),
            coverage: mean(ring, ({ covered }) => (covered ? 1 : 0)),
            mape: mean(ring, ({ percentage }) => percentage),
            drift: Math.abs(mean(newestOf(ring, added), ({ signed }) => signed)),
            executions: ring.length,
          },
  }
}

/** Of a ring to which so many were added. */
const newestOf = (ring: readonly Judged[], added: number): Judged[] => {
  const next = added % ring.length
  return [...ring.slice(next), ...ring.slice(0, next)].slice(-DRIFT_OVER)
}

const mean = (ring: readonly Judged[], value: (judged: Judged) => number): number =>
  round(ring.reduce((sum, judged) => sum + value(judged), 0) / ring.length)

/** For people. */
const round = (value: number): number => Math.round(value * 1e4) / 1e4
