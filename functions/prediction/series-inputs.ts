import type {
  EstimateRow,
  OrgTypeEstimateRow,
  PredictionInputsRow,
  SeriesInputsRow,
} from '../../db/queries/prediction-inputs.ts'
import { uuidV7Ms } from '../../db/rules/uuid-v7.ts'
import { fromBase64 } from './base64.ts'
import type { Estimate } from './estimate.ts'
import { emptyOrgMemory, unpackOrgMemory } from './model/org-memory.ts'
import { emptyMemory, unpackMemory, unpackTypeMemory } from './model/series-memory.ts'
import type { OrgTypeEstimate, SeriesView, TypeEstimate } from './model/series-view.ts'

/** What predictions look at of a series, unpacked: that is done once, when it is loaded. */
export type SeriesInputs = {
  type: string
  name: string
  paused: boolean
  view: SeriesView
}

export const toSeries = ({ series, shared_types, org_memory }: PredictionInputsRow): SeriesInputs[] => {
  const sharedTypes = new Map(shared_types.map((row) => [row.type, toTypeEstimate(row)]))
  const org = org_memory === null ? emptyOrgMemory() : unpackOrgMemory(fromBase64(org_memory))
  return series.map((row) => ({
    type: row.type,
    name: row.name,
    paused: row.paused,
    view: {
      estimate: toSeriesEstimate(row),
      driftLog: row.drift_log ?? 0,
      memory: row.memory === null ? emptyMemory() : unpackMemory(fromBase64(row.memory)),
      orgType: row.org_type ? toOrgType(row.org_type) : undefined,
      sharedType: sharedTypes.get(row.type),
      lastSubmittedAtS: row.newest_job_id === null ? undefined : uuidV7Ms(row.newest_job_id) / 1000,
      org,
    },
  }))
}

/** A series that exists, but has not run, has a row without a mean. */
const toSeriesEstimate = ({ runs, mean_log, deviation_log }: SeriesInputsRow): Estimate | undefined =>
  mean_log === null || deviation_log === null
    ? undefined
    : { runs: runs ?? 0, meanLog: mean_log, deviationLog: deviation_log }

const toOrgType = (row: OrgTypeEstimateRow): OrgTypeEstimate => ({
  ...toTypeEstimate(row),
  driftLog: row.drift_log,
  ...unpackTypeMemory(fromBase64(row.memory ?? '')),
})

const toTypeEstimate = ({ runs, mean_log, deviation_log, median_log }: EstimateRow): TypeEstimate => ({
  runs,
  meanLog: mean_log,
  deviationLog: deviation_log,
  medianLog: median_log,
})
