import { type Estimate, foldSample } from '../../functions/prediction/estimate.ts'
import { type PastRun, REMEMBERED_RUNS } from '../../functions/prediction/model/series-memory.ts'
import type {
  OrgTypeEstimate,
  SampledEstimate,
  TypeEstimate,
} from '../../functions/prediction/model/series-view.ts'
import { createRecallMap } from './recall-map.ts'

/**
 * How long an organisation's jobs of a type run: what its series without executions start from. Where the operator lets
 * organisations share estimates, also how long everybody's jobs of the type run.
 */
export type TypeStatistics = {
  observe(execution: { org: string; type: string; run: PastRun; baseLog: number }): void
  orgType(org: string, type: string): OrgTypeEstimate | undefined
  hasOrgType(key: string): boolean
  /** Undefined unless estimates are shared. */
  sharedType(type: string): TypeEstimate | undefined
  /** What was known of a shared type before. */
  restore(type: string, known: TypeEstimate): void
  /** Lets go of the types of organisations that were used longest ago. */
  trim(most: number): void
}

/** What one organisation does changes from one job to the next. */
const DRIFT_STEP = 0.3
const DRIFT_REACH = 2
/**
 * The median is that of so many runtimes, taken at even distances from the last thousand: of jobs that were submitted together
 * those that end last have run longest, so the newest few say little.
 */
const SAMPLED = 128
const SAMPLED_FROM = 1_024

export const createTypeStatistics = (options: {
  /** What is known of an organisation's jobs of a type from before, by `orgTypeKey`. */
  recall?: ((key: string) => OrgTypeEstimate | undefined) | undefined
  sharesEstimates: boolean
}): TypeStatistics => {
  const sharedTypes = new Map<string, SampledEstimate>()
  const orgTypes = createRecallMap(options.recall ?? (() => undefined))
  return {
    observe: ({ org, type, run, baseLog }) => {
      if (options.sharesEstimates) sharedTypes.set(type, foldRuntime(sharedTypes.get(type), run.log))
      const key = orgTypeKey(org, type)
      const own = orgTypes.get(key)
      const { driftLog, newest } = own ?? { driftLog: 0, newest: [] }
      orgTypes.set(key, {
        ...foldRuntime(own, run.log),
        driftLog: driftLog + DRIFT_STEP * (surpriseOf(run.log, baseLog) - driftLog),
        newest: [...newest.slice(1 - REMEMBERED_RUNS), run],
      })
    },
    orgType: (org, type) => orgTypes.get(orgTypeKey(org, type)),
    hasOrgType: orgTypes.has,
    sharedType: (type) => sharedTypes.get(type),
    restore: (type, known) => void sharedTypes.set(type, { ...known, sampled: [known.medianLog] }),
    trim: orgTypes.trim,
  }
}

const foldRuntime = (known: SampledEstimate | undefined, log: number): SampledEstimate => {
  const estimate = foldSample(known ?? NOTHING, { runs: 1, meanLog: log, spreadLog: 0 })
  const { sampled, medianLog } = known ?? { sampled: [], medianLog: log }
  const distance = Math.ceil(Math.min(estimate.runs, SAMPLED_FROM) / SAMPLED)
  if (estimate.runs % distance !== 0) return { ...estimate, sampled, medianLog }
  const next = [...sampled.slice(1 - SAMPLED), log]
  return { ...estimate, sampled: next, medianLog: next.toSorted((a, b) => a - b)[next.length >> 1] as number }
}

const NOTHING: Estimate = { runs: 0, meanLog: 0, deviationLog: 0 }

const surpriseOf = (log: number, baseLog: number): number => clip(log - baseLog, DRIFT_REACH)

const clip = (value: number, reach: number): number => Math.min(Math.max(value, -reach), reach)

export const orgTypeKey = (org: string, type: string): string => `${org} ${type}`
