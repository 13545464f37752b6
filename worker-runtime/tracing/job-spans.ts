import {
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import type { Redactor } from '../../functions/redaction.ts'
import { formatTraceparent, parseTraceparent } from '../../functions/tracing/traceparent.ts'
import type { Outcome } from '../outcome.ts'
import { ofClaim, ofFetch, ofJob, outcomeName } from './attributes.ts'
import type { FetchSpan, JobSpan, JobTracing } from './job-tracing.ts'
import { type SpanIds, traceIdOfJob } from './span-ids.ts'
import { nowMs, tracedFetch } from './traced-fetch.ts'

export const CLAIM = 'claim'
const MOST_LINKS = 128

/**
 * The spans of a worker. An attempt is a child of the span that submitted its job: one trace from the client to what
 * the handler fetches. A claim takes jobs of many traces, and so is in none of them: links lead there and back.
 */
export const createJobSpans = ({
  tracer,
  ids,
  redactor,
}: {
  tracer: Tracer
  ids: SpanIds
  redactor: Redactor
}): Omit<JobTracing, 'stop'> => {
  const claims = new WeakMap<ClaimedJob, Link>()
  let worker: string | undefined

  const claimed: JobTracing['claimed'] = (jobs, { workerId, sentAtMs }) => {
    worker = workerId
    const links = jobs.flatMap((job) => submitLink(job) ?? []).slice(0, MOST_LINKS)
    if (links.length === 0) return
    const attributes = ofClaim(jobs.length, workerId)
    const startTime = performance.timeOrigin + sentAtMs
    const span = tracer.startSpan(
      CLAIM,
      { kind: SpanKind.CLIENT, attributes, links, startTime },
      ROOT_CONTEXT,
    )
    span.end(nowMs())
    const link = { context: span.spanContext() }
    if (isSampled(link.context)) for (const job of jobs) claims.set(job, link)
  }

  const begin = (job: ClaimedJob): JobSpan => {
    const span = startExecute(job)
    const inside = trace.setSpan(ROOT_CONTEXT, span)
    const { traceId, spanId } = span.spanContext()
    const traceparent = formatTraceparent({ traceId, spanId, sampled: isSampled(span.spanContext()) })
    const fetched = (fetch: FetchSpan): void => recordFetch(fetch, inside)
    return {
      traceparent,
      run: (work) => context.with(inside, work),
      fetch: (fetch) => tracedFetch(fetch, traceparent, fetched),
      fetched,
      end: (outcome) => endExecute(span, outcome, redactor),
    }
  }

  const startExecute = (job: ClaimedJob): Span => {
    const { job_id: jobId, type, trace: stored } = job
    const parent = stored && remoteSpan(stored.traceparent)
    const claim = claims.get(job)
    const links = claim ? [claim] : []
    const made = parent ? {} : { traceId: traceIdOfJob(jobId) }
    const options = { kind: SpanKind.CONSUMER, links, attributes: ofJob(job, worker) }
    const around = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
    return ids.with(made, () => tracer.startSpan(`execute ${type}`, options, around))
  }

  const recordFetch = (fetch: FetchSpan, inside: Context): void => {
    const failed =
      fetch.error ?? (fetch.status !== undefined && fetch.status >= 400 ? String(fetch.status) : undefined)
    const options = { kind: SpanKind.CLIENT, attributes: ofFetch(fetch, failed), startTime: fetch.startMs }
    const span = ids.with({ spanId: fetch.spanId }, () => tracer.startSpan(fetch.method, options, inside))
    if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(fetch.endMs)
  }

  return { claimed, begin }
}

const isSampled = ({ traceFlags }: SpanContext): boolean => (traceFlags & TraceFlags.SAMPLED) !== 0

const remoteSpan = (traceparent: string): SpanContext | undefined => {
  const parsed = parseTraceparent(traceparent)
  if (!parsed) return undefined
  const { traceId, spanId, sampled } = parsed
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true }
}

/** What is not sampled leads nowhere. */
const submitLink = ({ trace: stored }: ClaimedJob): Link | undefined => {
  const context = stored ? remoteSpan(stored.traceparent) : undefined
  return context && isSampled(context) ? { context } : undefined
}

const endExecute = (span: Span, outcome: Outcome, redactor: Redactor): void => {
  span.setAttribute('smartqueue.job.outcome', outcomeName(outcome))
  if (outcome.kind === 'failed') {
    const { code, message } = outcome.error
    span.setAttribute('error.type', code)
    span.setStatus({ code: SpanStatusCode.ERROR, message: redactor.text(message) })
  }
  span.end()
}
