import { useEdgeBackend } from '../../../functions/prediction/lstm/edge-backend.ts'
import { createRandom } from '../../../functions/prediction/lstm/random.ts'
import { createWeights, DEFAULT_HIDDEN } from '../../../functions/prediction/lstm/weights.ts'
import { serializeWeights } from '../../../functions/prediction/lstm/weights-format.ts'
import { INPUTS } from '../../../functions/prediction/model/encoder.ts'
import { EXPERTS } from '../../../functions/prediction/model/experts.ts'
import { emptyOrgMemory } from '../../../functions/prediction/model/org-memory.ts'
import {
  packMemory,
  REMEMBERED_RUNS,
  unpackMemory,
} from '../../../functions/prediction/model/series-memory.ts'
import { buildRuntimeModel, type PredictionRequest } from '../../../functions/prediction/runtime-model.ts'

useEdgeBackend()

const random = createRandom(1)
const weights = serializeWeights(createWeights({ inputs: INPUTS, hidden: DEFAULT_HIDDEN, heads: 2 }, 1))
const model = buildRuntimeModel({ version: 1, weights, onlyOrg: null })

const pastRun = () => ({
  log: 5 + random(),
  sizeLog: 4 + random(),
  timeoutLog: 0,
  cpuLog: 0.7,
  gapLog: 2 * random(),
  hour: 24 * random(),
})

/** As it comes from the database. A series that is remembered in full, in an organisation that is, too. */
const memory = unpackMemory(
  packMemory({
    runs: Array.from({ length: REMEMBERED_RUNS }, pastRun),
    seen: 1_000,
    endedAtS: 1_700_000_000,
    errors: EXPERTS.map(random),
    weight: 8,
    state: Float32Array.from({ length: 4 * DEFAULT_HIDDEN }, () => random() - 0.5),
  }),
)
const estimate = { runs: 1_000, meanLog: 5.5, deviationLog: 0.3 }
const request = (n: number): PredictionRequest => ({
  view: {
    estimate,
    driftLog: 0.1,
    memory,
    orgType: { ...estimate, medianLog: 5.4, driftLog: 0, newest: memory.runs, sampled: [] },
    sharedType: undefined,
    lastSubmittedAtS: 1_700_000_100,
    org: emptyOrgMemory(),
  },
  job: {
    type: 'http',
    name: 'report',
    sizeLog: 4 + (n % 100) / 100,
    timeoutLog: 0,
    cpuLog: 0.7,
    memoryLog: 4,
    submittedAtS: 1_700_000_200,
    depthLog: 2,
  },
})

/** `count` predictions as a submission makes them, `rows` at a time: each one step from the state that its series carries. */
export const predict = (count: number, rows: number): number => {
  const requests = Array.from({ length: rows }, (_, n) => request(n))
  let sum = 0
  for (let n = 0; n < count; n += rows) sum += model.predict(requests, 'org')[0]?.p50Log ?? Number.NaN
  return sum
}

export default { fetch: () => Response.json(predict(1, 1)) }
