import { DEFAULT_ESTIMATE, type Estimate } from '../../../db/rules/estimate.ts'
import type { GlobalMemory } from './global-memory.ts'
import type { PastRun, SeriesMemory } from './series-memory.ts'

/** What is known of a job before it has run. Sizes and times are ln(1 + value); nought means that it has none. */
export type JobTraits = {
  type: string
  name: string
  /** Bytes of the payload. */
  sizeLog: number
  /** Milliseconds. */
  timeoutLog: number
  cpuLog: number
  memoryLog: number
  submittedAtS: number
  /** Jobs that wait. */
  depthLog: number
}

export type TypeEstimate = Estimate & { medianLog: number; driftLog: number }

/** `newest`: the last of the organisation's jobs of the type, of whatever name. */
export type OrgTypeEstimate = Estimate & { driftLog: number; newest: readonly PastRun[] }

/** All that a prediction looks at besides the job. */
export type SeriesView = {
  /** Undefined before the first execution. */
  estimate: Estimate | undefined
  driftLog: number
  memory: SeriesMemory
  orgType: OrgTypeEstimate | undefined
  type: TypeEstimate | undefined
  allTypes: TypeEstimate | undefined
  lastSubmittedAtS: number | undefined
  global: GlobalMemory
}

export type Baseline = { log: number; deviationLog: number; source: 'series' | 'type' | 'default' }

/**
 * What the network corrects: the running estimate of the series, else of the organisation's jobs of the type, else of the
 * type, else of all. The statement that submits falls back in the same order.
 */
export const baselineOf = ({ estimate, orgType, type, allTypes }: SeriesView): Baseline => {
  if (estimate) return { log: estimate.meanLog, deviationLog: estimate.deviationLog, source: 'series' }
  if (orgType) return { log: orgType.meanLog, deviationLog: orgType.deviationLog, source: 'type' }
  if (type) return { log: type.medianLog, deviationLog: type.deviationLog, source: 'type' }
  if (allTypes) return { log: allTypes.medianLog, deviationLog: allTypes.deviationLog, source: 'default' }
  return { log: DEFAULT_ESTIMATE.meanLog, deviationLog: DEFAULT_ESTIMATE.deviationLog, source: 'default' }
}
