import { INPUTS } from './encoder.ts'
import { EXPERTS } from './experts.ts'
import { createReader, createWriter } from './packing.ts'

/** What a prediction was made from: kept with the job, and learned from when it has run. */
export type Sample = {
  submittedAtS: number
  baseLog: number
  /** Executions of the series at that time, by its running estimate and as the learner has counted them. */
  runs: number
  seen: number
  /** p50 of each expert and, last, of all together. */
  advice: number[]
  /** The p50 in which no other organisation's runs have a part, and the spread that it was given before calibration. */
  ownP50Log: number
  spreadLog: number
  /** As shipped. */
  p50Log: number
  p90Log: number
  /** The spreads that went into it: of the running estimate, and of the network. */
  simpleSpreadLog: number
  networkSpreadLog: number
  sizeLog: number
  timeoutLog: number
  cpuLog: number
  gapLog: number
  x: Float32Array
}

const FORMAT = 1
const BYTES = 1 + 8 + 4 + 8 + 2 * (12 + EXPERTS.length + INPUTS)

export const packSample = (sample: Sample): Uint8Array => {
  const writer = createWriter(BYTES)
  writer.byte(FORMAT)
  writer.double(sample.submittedAtS)
  writer.float(sample.runs)
  writer.double(sample.seen)
  for (const name of FIXED) writer.fixed(sample[name])
  for (const log of sample.advice) writer.fixed(log)
  for (const value of sample.x) writer.fixed(value)
  return writer.bytes()
}

const FIXED = [
  'baseLog',
  'ownP50Log',
  'p50Log',
  'spreadLog',
  'simpleSpreadLog',
  'networkSpreadLog',
  'p90Log',
  'sizeLog',
  'timeoutLog',
  'cpuLog',
  'gapLog',
] as const

/** Undefined: of another release. */
export const unpackSample = (bytes: Uint8Array): Sample | undefined => {
  if (bytes.length !== BYTES) return undefined
  const reader = createReader(bytes)
  if (reader.byte() !== FORMAT) return undefined
  const times = { submittedAtS: reader.double(), runs: reader.float(), seen: reader.double() }
  const fixed = Object.fromEntries(FIXED.map((name) => [name, reader.fixed()])) as Record<
    (typeof FIXED)[number],
    number
  >
  return {
    ...times,
    ...fixed,
    advice: Array.from({ length: EXPERTS.length + 1 }, reader.fixed),
    x: Float32Array.from({ length: INPUTS }, reader.fixed),
  }
}
