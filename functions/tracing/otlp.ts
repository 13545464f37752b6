/** Spans as OTLP/HTTP writes them in JSON. */

export type AttributeValue = string | number | boolean
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>

export const SERVER = 2
export const CLIENT = 3
export const INTERNAL = 1
export type SpanKind = typeof SERVER | typeof CLIENT | typeof INTERNAL

export type FinishedSpan = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: SpanKind
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  /** What went wrong. */
  readonly error: string | undefined
}

export const toOtlp = (spans: readonly FinishedSpan[], resource: Attributes): string =>
  JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: toKeyValues(resource) },
        scopeSpans: [{ scope: { name: 'smartqueue' }, spans: spans.map(toSpan) }],
      },
    ],
  })

const SAMPLED = 1
const ERROR = 2

const toSpan = ({ startMs, endMs, attributes, error, ...span }: FinishedSpan) => ({
  ...span,
  flags: SAMPLED,
  startTimeUnixNano: toNanoseconds(startMs),
  endTimeUnixNano: toNanoseconds(endMs),
  attributes: toKeyValues(attributes),
  ...(error !== undefined && { status: { code: ERROR, message: error } }),
})

/** A number would lose its last digits. */
const toNanoseconds = (ms: number): string => `${ms}000000`

const toKeyValues = (attributes: Attributes) =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : { key, value: toValue(value) },
  )

const toValue = (value: AttributeValue) => {
  if (typeof value === 'string') return { stringValue: value }
  return typeof value === 'boolean' ? { boolValue: value } : { intValue: String(value) }
}
