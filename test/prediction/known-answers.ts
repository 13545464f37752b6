import { readFileSync } from 'node:fs'
import { mapParameters, type NetworkShape, type Weights } from '../../functions/prediction/lstm/weights.ts'

type Fixture = {
  shape: NetworkShape
  steps: number
  size: number
  parameters: Record<string, number[]>
  inputs: number[]
  initialState: number[]
  outputs: number[][]
  states: number[][]
}

/** What numpy answers; fixtures/forward.py says how. */
export const KNOWN: Fixture = JSON.parse(
  readFileSync(new URL('fixtures/forward.json', import.meta.url), 'utf8'),
)

export const knownWeights: Weights = {
  shape: KNOWN.shape,
  parameters: mapParameters((name) => Float32Array.from(KNOWN.parameters[name] ?? [])),
}

export const inputsOfStep = (t: number): Float32Array<ArrayBuffer> => {
  const width = KNOWN.size * KNOWN.shape.inputs
  return Float32Array.from(KNOWN.inputs.slice(t * width, (t + 1) * width))
}
