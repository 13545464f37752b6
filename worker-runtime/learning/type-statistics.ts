import { type Estimate, foldSample } from '../../db/rules/estimate.ts'
import { type PastRun, REMEMBERED_RUNS } from '../../functions/prediction/model/series-memory.ts'
import type { OrgTypeEstimate, TypeEstimate } from '../../functions/prediction/model/series-view.ts'
import { createRecallMap } from './recall-map.ts'

/** What is known of a type, of an organisation's jobs of it, and of all: what a series without executions starts from. */
export type TypeStatistics = {
  observe(execution: { org: string; type: string; run: PastRun; baseLog: number }): void
  /** An execution that was observed before: for the medians. */
  recollect(type: string, log: number, baseLog: number): void
  /** What was known of a type, beside the executions that were recollected. */
  restore(type: string, known: TypeEstimate): void
  type(type: string): TypeEstimate | undefined
  orgType(org: string, type: string): OrgTypeEstimate | undefined
  allTypes(): TypeEstimate | undefined
  hasOrgType(key: string): boolean
  /** Lets go of the types of organisations that were used longest ago. */
  trim(most: number): void
}

/** The median is that of so many newest executions: enough not to follow the last few, which ended last and so ran longest. */
const NEWEST = 1_000
const DRIFT_STEP = 0.02
/** What one organisation does changes from one job to the next. */
const ORG_DRIFT_STEP = 0.3
const DRIFT_REACH = 2

type Statistics = { estimate: Estimate; driftLog: number; newest: number[]; sorted: number[]; next: number }

export const ALL_TYPES = ''

/** `recall`: what is known of an organisation's jobs of a type from before, by `orgTypeKey`. */
export const createTypeStatistics = (
  recall: (key: string) => OrgTypeEstimate | undefined = () => undefined,
): TypeStatistics => {
  const types = new Map<string, Statistics>()
  const orgTypes = createRecallMap(recall)

  const statisticsOf = (type: string): Statistics => {
    const known = types.get(type) ?? { estimate: NOTHING, driftLog: 0, newest: [], sorted: [], next: 0 }
    types.set(type, known)
    return known
  }

  const recollect: TypeStatistics['recollect'] = (type, log, baseLog) => {
    for (const known of [statisticsOf(type), statisticsOf(ALL_TYPES)]) {
      known.estimate = foldSample(known.estimate, single(log))
      known.driftLog += DRIFT_STEP * (surpriseOf(log, baseLog) - known.driftLog)
      remember(known, log)
    }
  }

  const observe: TypeStatistics['observe'] = ({ org, type, run, baseLog }) => {
    const { log } = run
    recollect(type, log, baseLog)
    const surprise = surpriseOf(log, baseLog)
    const key = orgTypeKey(org, type)
    const own = orgTypes.get(key) ?? { ...NOTHING, driftLog: 0, newest: [] }
    const driftLog = own.driftLog + ORG_DRIFT_STEP * (surprise - own.driftLog)
    const newest = [...own.newest.slice(1 - REMEMBERED_RUNS), run]
    orgTypes.set(key, { ...foldSample(own, single(log)), driftLog, newest })
  }

  const find = (type: string): TypeEstimate | undefined => {
    const known = types.get(type)
    if (!known) return undefined
    const medianLog = known.sorted[known.sorted.length >> 1] ?? known.estimate.meanLog
    return { ...known.estimate, medianLog, driftLog: known.driftLog }
  }

  const restore: TypeStatistics['restore'] = (type, { medianLog, driftLog, ...estimate }) => {
    const known = statisticsOf(type)
    known.estimate = estimate
    known.driftLog = driftLog
    if (known.newest.length === 0) remember(known, medianLog)
  }

  return {
    observe,
    recollect,
    restore,
    type: find,
    allTypes: () => find(ALL_TYPES),
    orgType: (org, type) => orgTypes.get(orgTypeKey(org, type)),
    hasOrgType: orgTypes.has,
    trim: orgTypes.trim,
  }
}

const NOTHING: Estimate = { runs: 0, meanLog: 0, deviationLog: 0 }

const single = (log: number) => ({ runs: 1, meanLog: log, spreadLog: 0 })

const surpriseOf = (log: number, baseLog: number): number =>
  Math.min(Math.max(log - baseLog, -DRIFT_REACH), DRIFT_REACH)

export const orgTypeKey = (org: string, type: string): string => `${org} ${type}`

/** A ring in order of time, and the same numbers in order of size. */
const remember = (known: Statistics, log: number): void => {
  const oldest = known.newest[known.next]
  if (oldest !== undefined) known.sorted.splice(placeOf(known.sorted, oldest), 1)
  known.newest[known.next] = log
  known.next = (known.next + 1) % NEWEST
  known.sorted.splice(placeOf(known.sorted, log), 0, log)
}

/** The first place whose number is not smaller. */
const placeOf = (sorted: readonly number[], value: number): number => {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] as number) < value) low = middle + 1
    else high = middle
  }
  return low
}
