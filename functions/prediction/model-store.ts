import { getModelWeights } from '../../db/queries/prediction-inputs.ts'
import type { Run } from '../../db/query.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { fromBase64 } from './base64.ts'
import type { Faults } from './faults.ts'
import { type BuildModel, buildRuntimeModel, type RuntimeModel } from './runtime-model.ts'

export type ModelStore = {
  /** What there is to predict with now. If another version is champion, that is fetched in the background. */
  get(champion: number | null, hold: Hold): RuntimeModel
  /** For when the model has failed: the rules without the network. */
  readonly plain: RuntimeModel
}

/** Between two tries to fetch a version. */
const REST_MS = 2_000

/** Keeps the champion of this isolate. Weights that cannot be read are not asked for again: only another version helps. */
export const createModelStore = (options: {
  run: Run
  faults: Faults
  build?: BuildModel
  now?: () => number
}): ModelStore => {
  const { run, faults, build = buildRuntimeModel, now = Date.now } = options
  const plain = build(null)
  let current: { version: number | null; model: RuntimeModel } = { version: null, model: plain }
  let triedAt = Number.NEGATIVE_INFINITY

  /** Nobody is in the middle of the one before: a model predicts without a pause. */
  const use = (version: number | null, model: RuntimeModel): void => {
    if (current.model !== plain) current.model.dispose()
    current = { version, model }
  }

  const load = async (version: number, hold: Hold): Promise<void> => {
    const [row] = await run(getModelWeights(version))
    if (!row) return
    try {
      use(version, build({ version, weights: fromBase64(row.weights), onlyOrg: row.only_org }))
    } catch (error) {
      use(version, plain)
      faults.count('corrupt-weights', error, hold)
    }
  }

  return {
    plain,
    get: (champion, hold) => {
      if (champion === null) use(null, plain)
      else if (champion !== current.version && now() - triedAt >= REST_MS) {
        triedAt = now()
        hold(load(champion, hold).catch(logFailure))
      }
      return current.model
    },
  }
}
