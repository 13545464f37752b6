import { useEdgeBackend } from '../../functions/prediction/lstm/edge-backend.ts'
import { createPredictor } from '../../functions/prediction/lstm/predictor.ts'
import { parseWeights } from '../../functions/prediction/lstm/weights-format.ts'

useEdgeBackend()
export default { async fetch(r: Request) { const p = createPredictor(parseWeights(new Uint8Array(await r.arrayBuffer()))); return Response.json([...p.step(new Float32Array(64), new Float32Array(128)).state]) } }
