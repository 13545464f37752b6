import { DEFAULT_ESTIMATE, type Estimate } from '../estimate.ts'
import type { OrgMemory } from './org-memory.ts'
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

/** The mean follows the last ten or so; the median is that of about a thousand. */
export type TypeEstimate = Estimate & { medianLog: number }

/** With the runtimes that the median is of. */
export type SampledEstimate = TypeEstimate & { sampled: readonly number[] }

/** An organisation's jobs of a type, of whatever name. */
export type OrgTypeEstimate = SampledEstimate & { driftLog: number; newest: readonly PastRun[] }

/** All that a prediction looks at besides the job. */
export type SeriesView = {
  /** Undefined before the first execution. */
  estimate: Estimate | undefined
  driftLog: number
  memory: SeriesMemory
  orgType: OrgTypeEstimate | undefined
  /** Of everybody's jobs of the type: undefined unless the operator lets organisations share estimates. */
  sharedType: TypeEstimate | undefined
  lastSubmittedAtS: number | undefined
  org: OrgMemory
}

export type Baseline = { log: number; deviationLog: number; source: 'series' | 'type' | 'default' }

/**
 * What the network corrects: the running estimate of the series, else of the organisation's jobs of the type, else of
 * everybody's jobs of the type where estimates are shared, else a second. The function that submits does the same.
 */
export const baselineOf = ({ estimate, orgType, sharedType }: SeriesView): Baseline => {
  if (estimate) return { log: estimate.meanLog, deviationLog: estimate.deviationLog, source: 'series' }
  if (orgType) return { log: orgType.meanLog, deviationLog: orgType.deviationLog, source: 'type' }
  if (sharedType) return { log: sharedType.medianLog, deviationLog: sharedType.deviationLog, source: 'type' }
  return { log: DEFAULT_ESTIMATE.meanLog, deviationLog: DEFAULT_ESTIMATE.deviationLog, source: 'default' }
}
