import { initialStretch, type Stretch } from './calibration.ts'
import { EXPERTS } from './experts.ts'
import { type ExpertErrors, MATURITIES, noErrors } from './mixture.ts'
import { createReader, createWriter } from './packing.ts'

/** What is remembered of an organisation's series together. Nothing of it comes from the runs of others. */
export type OrgMemory = {
  /** What experts are worth, by how many executions a series has. */
  general: ExpertErrors[]
  stretch: Stretch
}

export const emptyOrgMemory = (): OrgMemory => ({
  general: Array.from({ length: MATURITIES }, noErrors),
  stretch: initialStretch(),
})

const FORMAT = 1

export const packOrgMemory = ({ general, stretch }: OrgMemory): Uint8Array => {
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

/** Bytes that another release packed count as nothing: the organisation is learned anew. */
export const unpackOrgMemory = (bytes: Uint8Array): OrgMemory => {
  try {
    const reader = createReader(bytes)
    if (reader.byte() !== FORMAT || reader.byte() !== EXPERTS.length) return emptyOrgMemory()
    const stretch = { p90: reader.float(), p99: reader.float(), seen: reader.double() }
    const general = Array.from({ length: MATURITIES }, () => ({
      weight: reader.float(),
      errors: noErrors().errors.map(reader.float),
    }))
    return { general, stretch }
  } catch (error) {
    if (error instanceof RangeError) return emptyOrgMemory()
    throw error
  }
}
