import { createReader, createWriter, type Reader, type Writer } from './packing.ts'

/** A past execution of a series, as the kernel features look at it. */
export type PastRun = {
  log: number
  sizeLog: number
  timeoutLog: number
  cpuLog: number
  /** Seconds between its submission and the one before, as ln(1 + s). */
  gapLog: number
  /** Of the day, 0 to 24, UTC. */
  hour: number
}

/** What the predictor remembers of a series beyond its running estimate. */
export type SeriesMemory = {
  /** Newest last. */
  runs: PastRun[]
  /** Executions that have completed, those that are not remembered one by one included. */
  seen: number
  /** When the newest ended. */
  endedAtS: number
  /** Each expert's error, exponentially weighted, and the weight of all that went into it. */
  errors: number[]
  weight: number
  /** h and c of both layers. Empty: nothing has run through the network. */
  state: Float32Array
}

/** What is remembered of an organisation's jobs of a type: the newest, and runtimes from about the last thousand. */
export type TypeMemory = { newest: readonly PastRun[]; sampled: readonly number[] }

/** So many past executions are compared with a new job. */
export const REMEMBERED_RUNS = 48

export const emptyMemory = (): SeriesMemory => ({
  runs: [],
  seen: 0,
  endedAtS: 0,
  errors: [],
  weight: 0,
  state: new Float32Array(0),
})

export const rememberRun = (memory: SeriesMemory, run: PastRun, endedAtS: number): void => {
  memory.runs.push(run)
  if (memory.runs.length > REMEMBERED_RUNS) memory.runs.shift()
  memory.endedAtS = endedAtS
}

const FORMAT = 1

export const packMemory = (memory: SeriesMemory): Uint8Array => {
  const { runs, errors, state } = memory
  const writer = createWriter(32 + runs.length * 12 + errors.length * 4 + state.length * 2)
  writer.byte(FORMAT)
  writer.byte(runs.length)
  writer.byte(errors.length)
  writer.short(state.length)
  writer.double(memory.seen)
  writer.double(memory.endedAtS)
  writer.float(memory.weight)
  for (const error of errors) writer.float(error)
  writeRuns(writer, runs)
  for (const value of state) writer.fixed(value)
  return writer.bytes()
}

/** Another format, or bytes that are none, are an empty memory: the series is learned anew. */
export const unpackMemory = (bytes: Uint8Array): SeriesMemory => {
  try {
    const reader = createReader(bytes)
    if (reader.byte() !== FORMAT) return emptyMemory()
    const [runs, errors, state] = [reader.byte(), reader.byte(), reader.short()]
    return {
      seen: reader.double(),
      endedAtS: reader.double(),
      weight: reader.float(),
      errors: Array.from({ length: errors }, reader.float),
      runs: readRuns(reader, runs),
      state: Float32Array.from({ length: state }, reader.fixed),
    }
  } catch (error) {
    if (error instanceof RangeError) return emptyMemory()
    throw error
  }
}

export const packTypeMemory = ({ newest, sampled }: TypeMemory): Uint8Array => {
  const writer = createWriter(3 + newest.length * 12 + sampled.length * 2)
  writer.byte(FORMAT)
  writer.byte(newest.length)
  writer.byte(sampled.length)
  writeRuns(writer, newest)
  for (const log of sampled) writer.fixed(log)
  return writer.bytes()
}

export const unpackTypeMemory = (bytes: Uint8Array): TypeMemory => {
  try {
    const reader = createReader(bytes)
    if (reader.byte() !== FORMAT) return { newest: [], sampled: [] }
    const [newest, sampled] = [reader.byte(), reader.byte()]
    return { newest: readRuns(reader, newest), sampled: Array.from({ length: sampled }, reader.fixed) }
  } catch (error) {
    if (error instanceof RangeError) return { newest: [], sampled: [] }
    throw error
  }
}

const writeRuns = (writer: Writer, runs: readonly PastRun[]): void => {
  for (const { log, sizeLog, timeoutLog, cpuLog, gapLog, hour } of runs) {
    for (const value of [log, sizeLog, timeoutLog, cpuLog, gapLog, hour]) writer.fixed(value)
  }
}

const readRuns = (reader: Reader, count: number): PastRun[] =>
  Array.from({ length: count }, () => ({
    log: reader.fixed(),
    sizeLog: reader.fixed(),
    timeoutLog: reader.fixed(),
    cpuLog: reader.fixed(),
    gapLog: reader.fixed(),
    hour: reader.fixed(),
  }))
