import { useEdgeBackend } from '../../../functions/prediction/lstm/edge-backend.ts'
import { createPredictor } from '../../../functions/prediction/lstm/predictor.ts'
import { createWeights } from '../../../functions/prediction/lstm/weights.ts'

useEdgeBackend()

const predictor = createPredictor(createWeights({ inputs: 64, hidden: 32, heads: 2 }, 1))

/** `count` predictions in a row, each from the state that the one before left. */
export const predict = (count: number): number => {
  const x = new Float32Array(64).fill(0.5)
  let state = new Float32Array(128)
  for (let n = 0; n < count; n++) state = predictor.step(x, state).state
  return state[0] ?? Number.NaN
}

export default { fetch: () => Response.json(predict(1)) }
