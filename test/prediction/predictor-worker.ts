import { useEdgeBackend } from '../../functions/prediction/lstm/edge-backend.ts'
import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import { parseWeights } from '../../functions/prediction/lstm/weights-format.ts'

useEdgeBackend()

/** Predicts on workerd with the backend of the edge, for tests that compare it with others. */
export default {
  async fetch(request: Request): Promise<Response> {
    const { weights, x, state } = (await request.json()) as Record<'weights' | 'x' | 'state', number[]>
    const predictor = createPredictor(parseWeights(Uint8Array.from(weights)))
    const answer = predictor.step(Float32Array.from(x), Float32Array.from(state))
    predictor.dispose()
    return Response.json({ outputs: [...answer.outputs], state: [...answer.state] })
  },
}
