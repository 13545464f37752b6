import { createRandom } from './random.ts'

/**
 * I inputs, H hidden units in each of the two layers, K heads. 32 hidden units unless measured otherwise: a step then
 * costs the edge a tenth of a millisecond, and the weights fit in one row of the database (84 kB with 64 inputs).
 */
export type NetworkShape = { inputs: number; hidden: number; heads: number }

/** Layer 1 sees the inputs, layer 2 the h of layer 1, the heads the h of layer 2 and, directly, the inputs. */
export const PARAMETERS = ['Wx1', 'Wh1', 'b1', 'Wx2', 'Wh2', 'b2', 'Wy', 'Wd', 'by'] as const
export type ParameterName = (typeof PARAMETERS)[number]

/** Plain data: what threads send each other and the database keeps. Each array is its matrix, row by row. */
export type Weights = { shape: NetworkShape; parameters: Record<ParameterName, Float32Array<ArrayBuffer>> }

export const DEFAULT_HIDDEN = 32

/** Rows and columns of each parameter; the 4H columns are the gates i f o g, H each. A bias is one row. */
export const parameterShapes = ({
  inputs: I,
  hidden: H,
  heads: K,
}: NetworkShape): Record<ParameterName, [rows: number, columns: number]> => ({
  Wx1: [I, 4 * H],
  Wh1: [H, 4 * H],
  b1: [1, 4 * H],
  Wx2: [H, 4 * H],
  Wh2: [H, 4 * H],
  b2: [1, 4 * H],
  Wy: [H, K],
  Wd: [I, K],
  by: [1, K],
})

/** How many numbers the state of one row has: h1 c1 h2 c2. */
export const stateSize = ({ hidden }: NetworkShape): number => 4 * hidden

/**
 * Where training starts. Matrices are uniform in ±1/√H, as in PyTorch's LSTM, so that a sum over H units is of order one.
 * Forget gates start open (bias 1: Jozefowicz et al., 2015), or the first thousand steps learn only to remember.
 * The heads are zero: an untrained network answers 0, which is the baseline it corrects.
 */
export const createWeights = (shape: NetworkShape, seed: number): Weights => {
  const { hidden: H } = shape
  const random = createRandom(seed)
  const limit = 1 / Math.sqrt(H)
  const parameters = mapParameters((name) => {
    const [rows, columns] = parameterShapes(shape)[name]
    const values = new Float32Array(rows * columns)
    if (name.startsWith('W') && name !== 'Wy' && name !== 'Wd')
      return values.map(() => (2 * random() - 1) * limit)
    return name === 'b1' || name === 'b2' ? values.fill(1, H, 2 * H) : values
  })
  return { shape: { ...shape }, parameters }
}

export const copyWeights = ({ shape, parameters }: Weights): Weights => ({
  shape: { ...shape },
  parameters: mapParameters((name) => parameters[name].slice()),
})

export const mapParameters = <Value>(value: (name: ParameterName) => Value): Record<ParameterName, Value> =>
  Object.fromEntries(PARAMETERS.map((name) => [name, value(name)])) as Record<ParameterName, Value>
