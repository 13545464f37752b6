import {
  type ExecutionRow,
  type OrgTypeRow,
  recallOrgTypes,
  recallSeries,
  type TypeRow,
} from '../../db/queries/learning.ts'
import type { Run } from '../../db/query.ts'
import { stateSize } from '../../functions/prediction/lstm/weights.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import {
  emptyMemory,
  packMemory,
  type SeriesMemory,
  unpackMemory,
} from '../../functions/prediction/model/series-memory.ts'
import type { OrgTypeEstimate, TypeEstimate } from '../../functions/prediction/model/series-view.ts'
import { fromBase64, SHAPE, toBase64 } from './find-champion.ts'
import type { Learner } from './learner.ts'
import { orgTypeKey } from './type-statistics.ts'

export type Recall = {
  series(id: string): SeriesMemory | undefined
  orgType(key: string): OrgTypeEstimate | undefined
  /** Fetches what the learner will ask for when it learns from these. */
  prepare(learner: Learner, rows: readonly ExecutionRow[]): Promise<void>
}

/** What is stored of series and of the types of organisations, fetched for a batch of executions at once. */
export const createRecall = (run: Run): Recall => {
  let series = new Map<string, SeriesMemory>()
  let orgTypes = new Map<string, OrgTypeEstimate>()
  return {
    series: (id) => series.get(id),
    orgType: (key) => orgTypes.get(key),
    prepare: async (learner, rows) => {
      const ids = new Set(rows.map(({ series_id }) => series_id).filter((id) => !learner.isAtHand(id)))
      const pairs = new Map(
        rows.flatMap(({ org_id: org, type }) =>
          type === null ? [] : [[orgTypeKey(org, type), { org, type }]],
        ),
      )
      const wanted = [...pairs].filter(([key]) => !learner.types.hasOrgType(key)).map(([, pair]) => pair)
      const foundSeries = ids.size > 0 ? await run(recallSeries([...ids])) : []
      const foundOrgTypes = wanted.length > 0 ? await run(recallOrgTypes(wanted)) : []
      series = new Map(foundSeries.map(({ series_id, memory }) => [series_id, toMemory(memory)]))
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
  ...toEstimate(row),
  driftLog: row.drift_log,
  newest: row.memory === null ? [] : unpackMemory(fromBase64(row.memory)).runs,
})

export const toTypeEstimate = (row: TypeRow): TypeEstimate => ({
  ...toEstimate(row),
  medianLog: row.median_log,
  driftLog: row.drift_log,
})

const toEstimate = (row: { runs: number; mean_log: number; deviation_log: number }) => ({
  runs: row.runs,
  meanLog: row.mean_log,
  deviationLog: row.deviation_log,
})

export const toTypeRow = (type: string, known: TypeEstimate): TypeRow => ({
  type,
  ...toColumns(known),
  median_log: known.medianLog,
})

export const toOrgTypeRow = (
  org: string,
  type: string,
  known: OrgTypeEstimate,
): OrgTypeRow & { memory: string } => ({
  org_id: org,
  type,
  ...toColumns(known),
  memory: toBase64(packMemory({ ...emptyMemory(), runs: [...known.newest], seen: known.runs })),
})

const toColumns = ({
  runs,
  meanLog,
  deviationLog,
  driftLog,
}: {
  runs: number
  meanLog: number
  deviationLog: number
  driftLog: number
}) => ({ runs, mean_log: meanLog, deviation_log: deviationLog, drift_log: driftLog })
