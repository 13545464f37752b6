import {
  type ExecutionRow,
  type OrgTypeRow,
  recallOrgs,
  recallOrgTypes,
  recallSeries,
} from '../../db/queries/learning.ts'
import type { EstimateRow, TypeEstimateRow } from '../../db/queries/prediction-inputs.ts'
import type { Run } from '../../db/query.ts'
import { stateSize } from '../../functions/prediction/lstm/weights.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import { type OrgMemory, unpackOrgMemory } from '../../functions/prediction/model/org-memory.ts'
import {
  emptyMemory,
  packTypeMemory,
  type SeriesMemory,
  unpackMemory,
  unpackTypeMemory,
} from '../../functions/prediction/model/series-memory.ts'
import type { OrgTypeEstimate, TypeEstimate } from '../../functions/prediction/model/series-view.ts'
import { fromBase64, SHAPE, toBase64 } from './find-champion.ts'
import type { Learner } from './learner.ts'
import { orgTypeKey } from './type-statistics.ts'

export type Recall = {
  series(id: string): SeriesMemory | undefined
  org(id: string): OrgMemory | undefined
  orgType(key: string): OrgTypeEstimate | undefined
  /** Fetches what the learner will ask for when it learns from these. */
  prepare(learner: Learner, rows: readonly ExecutionRow[]): Promise<void>
}

/** What is stored of series, organisations and their types, fetched for a batch of executions at once. */
export const createRecall = (run: Run): Recall => {
  let series = new Map<string, SeriesMemory>()
  let orgs = new Map<string, OrgMemory>()
  let orgTypes = new Map<string, OrgTypeEstimate>()
  return {
    series: (id) => series.get(id),
    org: (id) => orgs.get(id),
    orgType: (key) => orgTypes.get(key),
    prepare: async (learner, rows) => {
      const ids = new Set(rows.map(({ series_id }) => series_id).filter((id) => !learner.isAtHand(id)))
      const orgIds = new Set(rows.map(({ org_id }) => org_id).filter((id) => !learner.isOrgAtHand(id)))
      const pairs = new Map(
        rows.flatMap(({ org_id: org, type }) =>
          type === null ? [] : [[orgTypeKey(org, type), { org, type }]],
        ),
      )
      const wanted = [...pairs].filter(([key]) => !learner.types.hasOrgType(key)).map(([, pair]) => pair)
      const foundSeries = ids.size > 0 ? await run(recallSeries([...ids])) : []
      const foundOrgs = orgIds.size > 0 ? await run(recallOrgs([...orgIds])) : []
      const foundOrgTypes = wanted.length > 0 ? await run(recallOrgTypes(wanted)) : []
      series = new Map(foundSeries.map(({ series_id, memory }) => [series_id, toMemory(memory)]))
      orgs = new Map(foundOrgs.map(({ org_id, memory }) => [org_id, unpackOrgMemory(fromBase64(memory))]))
      orgTypes = new Map(foundOrgTypes.map((row) => [orgTypeKey(row.org_id, row.type), toOrgType(row)]))
    },
  }
}

/** What a release with other experts, or another network, has left is of no use. */
const toMemory = (text: string): SeriesMemory => {
  const memory = unpackMemory(fromBase64(text))
  const { errors, state } = memory
  const fits =
    (errors.length === 0 || errors.length === EXPERTS.length + 1) &&
    (state.length === 0 || state.length === stateSize(SHAPE))
  return fits ? memory : { ...memory, errors: [], weight: 0, state: emptyMemory().state }
}

const toOrgType = (row: OrgTypeRow): OrgTypeEstimate => ({
  ...toTypeEstimate(row),
  driftLog: row.drift_log,
  ...unpackTypeMemory(fromBase64(row.memory ?? '')),
})

export const toTypeEstimate = (row: EstimateRow): TypeEstimate => ({
  runs: row.runs,
  meanLog: row.mean_log,
  deviationLog: row.deviation_log,
  medianLog: row.median_log,
})

export const toTypeRow = (type: string, known: TypeEstimate): TypeEstimateRow => ({
  type,
  ...toColumns(known),
})

export const toOrgTypeRow = (
  org: string,
  type: string,
  known: OrgTypeEstimate,
): OrgTypeRow & { memory: string } => ({
  org_id: org,
  type,
  ...toColumns(known),
  drift_log: known.driftLog,
  memory: toBase64(packTypeMemory(known)),
})

const toColumns = ({ runs, meanLog, deviationLog, medianLog }: TypeEstimate) => ({
  runs,
  mean_log: meanLog,
  deviation_log: deviationLog,
  median_log: medianLog,
})
