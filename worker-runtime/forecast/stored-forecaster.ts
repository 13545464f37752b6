/** A forecaster as bytes: how long the JSON is, in four bytes, then the JSON of all but the weights, then the weights. */
import {
  CorruptWeights,
  parseWeights,
  serializeWeights,
} from '../../functions/prediction/lstm/weights-format.ts'
import { INPUTS } from './encoder.ts'
import { type Forecaster, HIDDEN } from './forecaster.ts'
import type { Horizon } from './horizon.ts'
import { NAMES } from './simple-forecasts.ts'
import { QUANTILES } from './windows.ts'

/** Changes with what the inputs or the stored values mean: those of another release are of no use. */
const VERSION = 1
const LENGTH_BYTES = 4

export const packForecaster = ({ weights, ...rest }: Forecaster, { spans }: Horizon): Uint8Array => {
  const json = Buffer.from(JSON.stringify({ version: VERSION, names: NAMES, spans, ...rest }))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(json.length)
  return Buffer.concat([length, json, serializeWeights(weights)])
}

/** Undefined if it is of another release or of another lead time, or damaged: then one begins anew. */
export const unpackForecaster = (bytes: Uint8Array, { spans }: Horizon): Forecaster | undefined => {
  const all = Buffer.from(bytes)
  if (all.length < LENGTH_BYTES) return undefined
  const end = LENGTH_BYTES + all.readUInt32LE()
  try {
    const {
      version,
      names,
      spans: storedSpans,
      ...rest
    } = JSON.parse(all.toString('utf8', LENGTH_BYTES, end))
    const of = JSON.stringify([version, names, storedSpans])
    if (of !== JSON.stringify([VERSION, NAMES, spans])) return undefined
    const weights = parseWeights(all.subarray(end))
    const { inputs, hidden, heads } = weights.shape
    const isOurs = inputs === INPUTS && hidden === HIDDEN && heads === QUANTILES.length
    return isOurs ? { ...rest, weights } : undefined
  } catch (error) {
    if (error instanceof CorruptWeights || error instanceof SyntaxError) return undefined
    throw error
  }
}
