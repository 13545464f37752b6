/** Numbers as bytes, little-endian. A `fixed` number has two of them: ±32 in steps of a thousandth. */
const STEPS = 1024
const LARGEST = 32767

export type Writer = ReturnType<typeof createWriter>
export type Reader = ReturnType<typeof createReader>

export const createWriter = (capacity: number) => {
  const view = new DataView(new ArrayBuffer(capacity))
  let at = 0
  const advance = (bytes: number): number => {
    at += bytes
    return at - bytes
  }
  return {
    byte: (value: number): void => view.setUint8(advance(1), value),
    short: (value: number): void => view.setUint16(advance(2), value, true),
    float: (value: number): void => view.setFloat32(advance(4), value, true),
    double: (value: number): void => view.setFloat64(advance(8), value, true),
    fixed: (value: number): void => {
      const steps = Math.round(value * STEPS)
      view.setInt16(advance(2), Math.min(Math.max(steps, -LARGEST), LARGEST), true)
    },
    bytes: (): Uint8Array => new Uint8Array(view.buffer, 0, at),
  }
}

/** Reading beyond the end throws a RangeError. */
export const createReader = (bytes: Uint8Array) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const advance = (count: number): number => {
    at += count
    return at - count
  }
  return {
    byte: (): number => view.getUint8(advance(1)),
    short: (): number => view.getUint16(advance(2), true),
    float: (): number => view.getFloat32(advance(4), true),
    double: (): number => view.getFloat64(advance(8), true),
    fixed: (): number => view.getInt16(advance(2), true) / STEPS,
  }
}
