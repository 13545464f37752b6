import { type Attributes, type FinishedSpan, SERVER, type SpanKind } from './otlp.ts'
import type { Sampler } from './sampler.ts'
import {
  formatTraceparent,
  newSpanId,
  newTraceId,
  parseTraceparent,
  type TraceContext,
} from './traceparent.ts'

/** A request's part of a trace. */
export type RequestTrace = {
  /** What jobs keep, so that their execution goes on from here. Null: nobody traces the request. */
  readonly traceparent: string | null
  /** Does the work in a span of its own below that of the request. */
  span<T>(part: SpanPart, work: () => Promise<T>): Promise<T>
}

export type SpanPart = { readonly name: string; readonly kind: SpanKind; readonly attributes?: Attributes }

/** Ends the span of the request, and answers all that it was made of. */
export type RequestEnd = (name: string, attributes: Attributes, error: string | undefined) => FinishedSpan[]

/** Nothing is recorded. What came is kept as it came: others may go on with it. */
export const passOn = (incoming: string | undefined): RequestTrace => {
  const traceparent = incoming && parseTraceparent(incoming) ? incoming : null
  return { traceparent, span: (_, work) => work() }
}

/** The clock stands still while workerd computes: a span without I/O takes no time. */
export const beginTrace = (
  incoming: string | undefined,
  isSampled: Sampler,
  now: () => number = Date.now,
): { trace: RequestTrace; end: RequestEnd | undefined } => {
  const parent = parseTraceparent(incoming)
  const traceId = parent?.traceId ?? newTraceId()
  if (!isSampled(traceId, parent))
    return { trace: passOn(unsampled(incoming, parent, traceId)), end: undefined }
  const own: TraceContext = { traceId, spanId: newSpanId(), sampled: true }
  const startMs = now()
  const finished: FinishedSpan[] = []

  const record = async <T>({ name, kind, attributes = {} }: SpanPart, work: () => Promise<T>): Promise<T> => {
    const span = { traceId, spanId: newSpanId(), parentSpanId: own.spanId, name, kind, startMs: now() }
    const finish = (failed?: string): void => {
      finished.push({
        ...span,
        endMs: now(),
        attributes: { ...attributes, 'error.type': failed },
        error: failed,
      })
    }
    try {
      const value = await work()
      finish()
      return value
    } catch (error) {
      finish(nameOf(error))
      throw error
    }
  }

  return {
    trace: { traceparent: formatTraceparent(own), span: record },
    end: (name, attributes, error) => [
      {
        traceId,
        spanId: own.spanId,
        parentSpanId: parent?.spanId,
        name,
        kind: SERVER,
        startMs,
        endMs: now(),
        attributes,
        error,
      },
      ...finished,
    ],
  }
}

/** What executes the job is to honour the decision, too. */
const unsampled = (
  incoming: string | undefined,
  parent: TraceContext | undefined,
  traceId: string,
): string | undefined =>
  parent?.sampled === false
    ? incoming
    : formatTraceparent({ traceId, spanId: parent?.spanId ?? newSpanId(), sampled: false })

/** Not what it says: that may be about somebody's data. */
const nameOf = (error: unknown): string => (error instanceof Error ? error.constructor.name : 'Error')
