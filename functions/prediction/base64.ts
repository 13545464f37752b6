export const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))

/** Of a few hundred bytes: each becomes an argument. */
export const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))
