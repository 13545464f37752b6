const LF = 10
const CR = 13

/**
 * Bytes as lines of text. A carriage return ends a line, too: programs that show their progress write nothing else for
 * hours. `cut`: the line was longer than `maxBytes`.
 */
export const createLines = (
  maxBytes: number,
  onLine: (line: string, cut: boolean) => void,
): { add(bytes: Buffer): void; end(): void } => {
  let pieces: Buffer[] = []
  let size = 0

  const keep = (bytes: Buffer): void => {
    // A copy: the line may wait for its end long after the buffer it is part of.
    if (size < maxBytes && bytes.length > 0) pieces.push(Buffer.from(bytes.subarray(0, maxBytes - size)))
    size += bytes.length
  }

  const end = (): void => {
    if (size === 0) return
    // `stream` holds back a character that the limit cut in two.
    const text = new TextDecoder().decode(Buffer.concat(pieces), { stream: size > maxBytes })
    const cut = size > maxBytes
    pieces = []
    size = 0
    onLine(text, cut)
  }

  return {
    end,
    add: (bytes) => {
      let from = 0
      for (let at = 0; at < bytes.length; at++) {
        if (bytes[at] !== LF && bytes[at] !== CR) continue
        keep(bytes.subarray(from, at))
        end()
        from = at + 1
      }
      keep(bytes.subarray(from))
    },
  }
}
