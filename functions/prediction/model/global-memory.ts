import { initialStretch, type Stretch } from './calibration.ts'
import { EXPERTS } from './experts.ts'
import { type ExpertErrors, MATURITIES, noErrors } from './mixture.ts'
import { createReader, createWriter } from './packing.ts'

/** What is remembered of all series together. */
export type GlobalMemory = {
  /** What experts are worth, by how many executions a series has. */
  general: ExpertErrors[]
  stretch: Stretch
}

export const emptyGlobalMemory = (): GlobalMemory => ({
  general: Array.from({ length: MATURITIES }, noErrors),
  stretch: initialStretch(),
})

const FORMAT = 1

export const packGlobalMemory = ({ general, stretch }: GlobalMemory): Uint8Array => {
  const writer = createWriter(24 + MATURITIES * (EXPERTS.length + 2) * 4)
  writer.byte(FORMAT)
  writer.byte(EXPERTS.length)
  writer.float(stretch.p90)
  writer.float(stretch.p99)
  writer.double(stretch.seen)
  for (const { errors, weight } of general) {
    writer.float(weight)
    for (const error of errors) writer.float(error)
  }
  return writer.bytes()
}

/** Of another release: begun anew. */
export const unpackGlobalMemory = (bytes: Uint8Array): GlobalMemory => {
  try {
    const reader = createReader(bytes)
    if (reader.byte() !== FORMAT || reader.byte() !== EXPERTS.length) return emptyGlobalMemory()
    const stretch = { p90: reader.float(), p99: reader.float(), seen: reader.double() }
    const general = Array.from({ length: MATURITIES }, () => ({
      weight: reader.float(),
      errors: noErrors().errors.map(reader.float),
    }))
    return { general, stretch }
  } catch (error) {
    if (error instanceof RangeError) return emptyGlobalMemory()
    throw error
  }
}
