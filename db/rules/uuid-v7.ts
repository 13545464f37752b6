let lastMs = 0
let sequence = 0
let prefix = ''

/** Random bytes are fetched for many ids at a time: one call of the generator costs more than the rest of an id. */
const POOL_IDS = 256
const pool = new Uint8Array(POOL_IDS * 8)
let used = pool.length

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** UUIDv7 (RFC 9562). Ids of one process sort in the order they were made, also within a millisecond. */
export const uuidV7 = (): string => {
  const at = takeRandom()
  const nowMs = Date.now()
  if (nowMs > lastMs) {
    beginMs(nowMs)
    // Starts in the lower half, so that there is room to count up.
    sequence = Math.floor(Math.random() * 0x800)
  } else if (++sequence > 0xfff) {
    beginMs(lastMs + 1)
    sequence = 0
  }
  const variant = HEX[0x80 | ((pool[at] ?? 0) & 0x3f)]
  const count = `${HEX[sequence >> 8]?.charAt(1)}${HEX[sequence & 0xff]}`
  return `${prefix}${count}-${variant}${hex(at + 1, 1)}-${hex(at + 2, 6)}`
}

/** The text of the time is the same for all ids of a millisecond. */
const beginMs = (ms: number): void => {
  lastMs = ms
  const time = ms.toString(16).padStart(12, '0')
  prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`
}

/** The position of eight fresh bytes. */
const takeRandom = (): number => {
  if (used === pool.length) {
    crypto.getRandomValues(pool)
    used = 0
  }
  used += 8
  return used - 8
}

const hex = (from: number, count: number): string => {
  let text = ''
  for (let n = from; n < from + count; n++) text += HEX[pool[n] ?? 0]
  return text
}

/** The least id of a millisecond: ids made from then on are not below it. */
export const uuidV7Floor = (ms: number): string => {
  const time = Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

/** When an id was made, in milliseconds. */
export const uuidV7Ms = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
