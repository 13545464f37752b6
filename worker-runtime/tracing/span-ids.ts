import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace-node'

export type SpanIds = IdGenerator & {
  /** Makes a span that gets these ids, as far as it needs them, and no other. */
  with<Made>(ids: { traceId?: string | undefined; spanId?: string | undefined }, make: () => Made): Made
}

/** The SDK asks for ids without saying what for; it asks while the span is made, so that they can be put ready. */
export const createSpanIds = (): SpanIds => {
  const random = new RandomIdGenerator()
  let next: { traceId?: string | undefined; spanId?: string | undefined } = {}
  return {
    generateTraceId: () => next.traceId ?? random.generateTraceId(),
    generateSpanId: () => next.spanId ?? random.generateSpanId(),
    with: (ids, make) => {
      next = ids
      try {
        return make()
      } finally {
        next = {}
      }
    },
  }
}

/** A job that was submitted in no trace is one of its own, known by its id: all its attempts are found there. */
export const traceIdOfJob = (jobId: string): string => jobId.replaceAll('-', '')
