let lastMs = 0
let sequence = 0

/**
 * UUIDv7 (RFC 9562): 48 bits of milliseconds, a 12-bit sequence, 62 random bits. Ids of one process sort in the
 * order they were made, also within a millisecond: jobs submitted together keep their order.
 */
export const uuidV7 = (): string => {
  const nowMs = Date.now()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const view = new DataView(bytes.buffer)
  if (nowMs > lastMs) {
    lastMs = nowMs
    // Starts in the lower half, so that there is room to count up.
    sequence = view.getUint16(6) & 0x7ff
  } else if (++sequence > 0xfff) {
    lastMs++
    sequence = 0
  }
  view.setUint16(0, Math.floor(lastMs / 2 ** 32))
  view.setUint32(2, lastMs % 2 ** 32)
  view.setUint16(6, 0x7000 | sequence)
  view.setUint8(8, 0x80 | (view.getUint8(8) & 0x3f))
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The least id of a millisecond: ids made from then on are not below it. */
export const uuidV7Floor = (ms: number): string => {
  const hex = Math.min(Math.max(ms, 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
