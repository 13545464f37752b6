/** How many bytes a text takes in UTF-8. Most texts have no other characters than ASCII, and are not encoded for it. */
export const utf8Bytes = (text: string): number =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
  /^[\x00-\x7f]*$/.test(text) ? text.length : new TextEncoder().encode(text).length
