import { createHash } from 'node:crypto'
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

/**
 * The span of the nth execution of a job. Whoever executes it next can tell without asking. By executions and not by
 * attempts: a snoozed one, and one after a retry by hand, has the number of another.
 */
export const executionSpanId = (jobId: string, execution: number): string =>
  createHash('sha256').update(`${jobId} ${execution}`).digest('hex').slice(0, 16)

/** A job that was submitted in no trace is one of its own, known by its id: all its attempts are found there. */
export const traceIdOfJob = (jobId: string): string => jobId.replaceAll('-', '')
