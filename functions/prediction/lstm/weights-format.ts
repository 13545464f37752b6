import { mapParameters, type NetworkShape, PARAMETERS, parameterShapes, type Weights } from './weights.ts'

/**
 * Weights as bytes, little-endian as every machine that runs this: a header of six 32-bit words (magic, version,
 * inputs, hidden, heads, checksum), then the parameters as 32-bit floats in the order of PARAMETERS.
 */
const MAGIC = 0x4e4e5153 // "SQNN"
const VERSION = 1
const HEADER_WORDS = 6
const HEADER_BYTES = 4 * HEADER_WORDS
const CHECKSUM_WORD = 5

/** A width above this is a damaged header and not a network: refused before anything of that size is allocated. */
const LARGEST_WIDTH = 4096

/** These bytes are not weights that serializeWeights has written. */
export class CorruptWeights extends Error {
  override name = 'CorruptWeights'
}

export const serializeWeights = ({ shape, parameters }: Weights): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(HEADER_BYTES + 4 * countValues(shape))
  const header = new Uint32Array(bytes.buffer, 0, HEADER_WORDS)
  header.set([MAGIC, VERSION, shape.inputs, shape.hidden, shape.heads])
  let offset = HEADER_BYTES
  for (const name of PARAMETERS) {
    new Float32Array(bytes.buffer, offset).set(parameters[name])
    offset += parameters[name].byteLength
  }
  header[CHECKSUM_WORD] = checksum(bytes)
  return bytes
}

export const parseWeights = (source: Uint8Array): Weights => {
  // A copy: words may be read only at multiples of four. (Not slice: that of a Buffer, as pg gives, copies nothing.)
  const bytes = new Uint8Array(source)
  if (bytes.length < HEADER_BYTES) throw new CorruptWeights(`${bytes.length} bytes are no weights`)
  const header = new Uint32Array(bytes.buffer, 0, HEADER_WORDS)
  const [magic, version, inputs = 0, hidden = 0, heads = 0, expected] = header
  if (magic !== MAGIC) throw new CorruptWeights('These bytes are not weights')
  if (version !== VERSION) throw new CorruptWeights(`Weights of the unknown format ${version}`)
  const shape = { inputs, hidden, heads }
  if (Object.values(shape).some((width) => width < 1 || width > LARGEST_WIDTH)) {
    throw new CorruptWeights(`No network has the shape ${JSON.stringify(shape)}`)
  }
  const length = HEADER_BYTES + 4 * countValues(shape)
  if (bytes.length !== length) throw new CorruptWeights(`${bytes.length} bytes instead of ${length}`)
  if (checksum(bytes) !== expected) throw new CorruptWeights('The checksum does not match')
  return { shape, parameters: readParameters(bytes, shape) }
}

const readParameters = (bytes: Uint8Array<ArrayBuffer>, shape: NetworkShape): Weights['parameters'] => {
  const shapes = parameterShapes(shape)
  let offset = HEADER_BYTES
  return mapParameters((name) => {
    const [rows, columns] = shapes[name]
    const values = new Float32Array(bytes.buffer, offset, rows * columns).slice()
    if (!values.every(Number.isFinite)) throw new CorruptWeights(`${name} has values that are not numbers`)
    offset += values.byteLength
    return values
  })
}

const countValues = (shape: NetworkShape): number =>
  Object.values(parameterShapes(shape)).reduce((sum, [rows, columns]) => sum + rows * columns, 0)

/** FNV-1a of all bytes but its own: a single changed byte always changes it, others all but one time in 4 billion. */
const checksum = (bytes: Uint8Array): number => {
  let hash = 0x811c9dc5
  for (let n = 0; n < bytes.length; n++) {
    if (n >> 2 === CHECKSUM_WORD) continue
    hash = Math.imul(hash ^ (bytes[n] as number), 0x01000193)
  }
  return hash >>> 0
}
