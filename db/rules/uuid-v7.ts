let lastMs = 0
let sequence = 0
let prefix = ''

/** UUIDv7 (RFC 9562). Ids of one process sort in the order they were made, also within a millisecond. */
export const uuidV7 = (): string => {
  const nowMs = Date.now()
  // Starts in the lower half, so that there is room to count up.
  if (nowMs > lastMs) beginMs(nowMs, Math.floor(Math.random() * 0x800))
  else if (++sequence > 0xfff) beginMs(lastMs + 1, 0)
  // The variant and 62 random bits of a UUIDv4. Runtimes fetch random bytes for many of these at a time.
  return prefix + sequence.toString(16).padStart(3, '0') + crypto.randomUUID().slice(18)
}

/** The text of the time is the same for all ids of a millisecond. */
const beginMs = (ms: number, first: number): void => {
  lastMs = ms
  sequence = first
  prefix = prefixOf(ms)
}

const prefixOf = (ms: number): string => {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
}

/** The least id of a millisecond: ids made from then on are not below it. */
export const uuidV7Floor = (ms: number): string =>
  `${prefixOf(Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1))}000-8000-000000000000`

/** When an id was made, in milliseconds. */
export const uuidV7Ms = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
