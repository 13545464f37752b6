/** Where a trace goes on, as W3C Trace Context says it: which trace, the span before, and whether it is sampled. */
export type TraceContext = { readonly traceId: string; readonly spanId: string; readonly sampled: boolean }

const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const SAMPLED = 0x01

/** Undefined: it is none of version 00. Whoever gets such a header begins a trace of its own. */
export const parseTraceparent = (text: string | null | undefined): TraceContext | undefined => {
  const [, traceId = '', spanId = '', flags = ''] = FORM.exec(text ?? '') ?? []
  if (isZero(traceId) || isZero(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 }
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`

const isZero = (id: string): boolean => /^0*$/.test(id)

export const newTraceId = (): string => randomHex(16)
export const newSpanId = (): string => randomHex(8)

const randomHex = (bytes: number): string => {
  for (;;) {
    const id = Array.from(crypto.getRandomValues(new Uint8Array(bytes)), toHex).join('')
    if (!isZero(id)) return id
  }
}

const toHex = (byte: number): string => byte.toString(16).padStart(2, '0')
