import type {
  EstimateRow,
  OrgTypeRow,
  PredictionInputsRow,
  SeriesInputsRow,
  TypeEstimateRow,
} from '../../db/queries/prediction-inputs.ts'
import type { Estimate } from '../../db/rules/estimate.ts'
import { uuidV7Ms } from '../../db/rules/uuid-v7.ts'
import { fromBase64 } from './base64.ts'
import { emptyMemory, unpackMemory } from './model/series-memory.ts'
import type { OrgTypeEstimate, SeriesView, TypeEstimate } from './model/series-view.ts'

/** What predictions look at of a series, unpacked: that is done once, when it is loaded. */
export type SeriesInputs = {
  type: string
  name: string
  paused: boolean
  view: Omit<SeriesView, 'global'>
}

export const toSeries = ({ series, types }: PredictionInputsRow): SeriesInputs[] => {
  const byType = new Map(types.map((row) => [row.type, toTypeEstimate(row)]))
  return series.map((row) => ({
    type: row.type,
    name: row.name,
    paused: row.paused,
    view: {
      estimate: toSeriesEstimate(row),
      driftLog: row.drift_log ?? 0,
      memory: row.memory === null ? emptyMemory() : unpackMemory(fromBase64(row.memory)),
      orgType: row.org_type ? toOrgType(row.org_type) : undefined,
      type: byType.get(row.type),
      allTypes: byType.get(''),
      lastSubmittedAtS: row.newest_job_id === null ? undefined : uuidV7Ms(row.newest_job_id) / 1000,
    },
  }))
}

/** A series that exists, but has not run, has a row without a mean. */
const toSeriesEstimate = ({ runs, mean_log, deviation_log }: SeriesInputsRow): Estimate | undefined =>
  mean_log === null || deviation_log === null
    ? undefined
    : { runs: runs ?? 0, meanLog: mean_log, deviationLog: deviation_log }

const toEstimate = ({ runs, mean_log, deviation_log }: EstimateRow): Estimate => ({
  runs,
  meanLog: mean_log,
  deviationLog: deviation_log,
})

const toOrgType = (row: OrgTypeRow): OrgTypeEstimate => ({
  ...toEstimate(row),
  driftLog: row.drift_log,
  newest: row.memory === null ? [] : unpackMemory(fromBase64(row.memory)).runs,
})

const toTypeEstimate = (row: TypeEstimateRow): TypeEstimate => ({
  ...toEstimate(row),
  medianLog: row.median_log ?? row.mean_log,
  driftLog: row.drift_log,
})
