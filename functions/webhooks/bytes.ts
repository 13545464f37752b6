/** Undefined if the text is no hex. */
export const fromHex = (text: string): Uint8Array<ArrayBuffer> | undefined => {
  if (text.length % 2 !== 0 || !/^[0-9a-f]+$/i.test(text)) return undefined
  const bytes = new Uint8Array(text.length / 2)
  for (let n = 0; n < bytes.length; n++) bytes[n] = Number.parseInt(text.slice(2 * n, 2 * n + 2), 16)
  return bytes
}

/** With or without padding, in the alphabet of URLs too. Undefined if the text is no base64. */
export const fromBase64Text = (text: string): Uint8Array<ArrayBuffer> | undefined => {
  const plain = text.replaceAll('-', '+').replaceAll('_', '/')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(plain)) return undefined
  try {
    return Uint8Array.from(atob(plain), (c) => c.charCodeAt(0))
  } catch {
    return undefined
  }
}
