/** The last `maxBytes` of what a stream has brought. */
export const createTail = (
  maxBytes: number,
): { add(bytes: Buffer): void; text(): string; isCut(): boolean } => {
  let chunks: Buffer[] = []
  let size = 0
  let cut = false

  const trim = (): void => {
    cut = true
    chunks = [Buffer.from(Buffer.concat(chunks).subarray(-maxBytes))]
    size = maxBytes
  }

  return {
    isCut: () => cut || size > maxBytes,
    add: (bytes) => {
      chunks.push(bytes)
      size += bytes.length
      // Now and then: for each chunk it would copy everything each time.
      if (size > 4 * maxBytes) trim()
    },
    text: () => {
      if (size > maxBytes) trim()
      const bytes = Buffer.concat(chunks)
      return bytes.subarray(cut ? firstWhole(bytes) : 0).toString()
    },
  }
}

/** Where the first whole character begins: the bytes that go on with one in UTF-8 begin with the bits 10. */
const firstWhole = (bytes: Buffer): number => {
  let at = 0
  while (at < 4 && ((bytes[at] ?? 0) & 0b1100_0000) === 0b1000_0000) at++
  return at
}
