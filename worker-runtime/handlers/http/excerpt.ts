const MAX_BYTES = 4096
const MAX_CHARACTERS = 300
/** What counts is the status, and that has come: a body that does not is not waited for. */
const PATIENCE_MS = 1_000

/** The beginning of what a server says, for people. The connection is free afterwards, or closed. */
export const readExcerpt = async (response: Response): Promise<string> => {
  const reader = response.body?.getReader()
  if (!reader) return ''
  const giveUp = (): Promise<void> => reader.cancel().catch(() => {})
  const impatient = setTimeout(giveUp, PATIENCE_MS)
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    while (bytes < MAX_BYTES) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value)
      bytes += value.length
    }
  } catch {
    // It broke off. What there is will do.
  } finally {
    clearTimeout(impatient)
    await giveUp()
  }
  return toExcerpt(new TextDecoder().decode(Buffer.concat(chunks).subarray(0, MAX_BYTES))).trim()
}

/** The cut may split a character, and Postgres stores neither halves of a pair nor NUL. */
export const toExcerpt = (text: string): string =>
  text
    .slice(0, MAX_CHARACTERS)
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
