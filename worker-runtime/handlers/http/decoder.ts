/** Of the charset that a content type names. Undefined if it names none that anybody knows: then it is taken for UTF-8. */
export const decoderOf = (contentType: string | null): TextDecoder | undefined =>
  decoderFor(/;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType ?? '')?.[1])

/** By a label of the Encoding Standard. */
export const decoderFor = (label: string | undefined): TextDecoder | undefined => {
  if (label === undefined) return undefined
  try {
    return new TextDecoder(label)
  } catch {
    return undefined
  }
}
