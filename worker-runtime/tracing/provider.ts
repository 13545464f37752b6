import { context, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  NodeTracerProvider,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node'
import { createRedactor } from '../../functions/redaction.ts'
import {
  DEFAULT_SAMPLER,
  parsePairs,
  type SamplerName,
  tracesUrl,
} from '../../functions/tracing/otel-settings.ts'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, secretsOf } from '../config.ts'
import { CLAIM, createJobSpans } from './job-spans.ts'
import type { JobTracing } from './job-tracing.ts'
import { createSpanIds } from './span-ids.ts'

/** A worker that stops does not wait longer for a receiver that does not answer. */
const FLUSH_MS = 5_000

/**
 * OpenTelemetry's own SDK, registered for the whole process: handlers that use `@opentelemetry/api` find their attempt's
 * span as the active one. Spans go in batches, and those that a slow receiver does not take are dropped.
 */
export const createTracing = (options: {
  config: Config
  endpoint: string
  onError: (error: Error) => void
}): JobTracing => {
  const { config, endpoint, onError } = options
  const ids = createSpanIds()
  const exporter = new OTLPTraceExporter({
    url: tracesUrl(endpoint),
    headers: parsePairs(config.OTEL_EXPORTER_OTLP_HEADERS ?? '') ?? {},
  })
  const provider = new NodeTracerProvider({
    idGenerator: ids,
    sampler: samplerOf(config),
    resource: resourceFromAttributes({
      ...parsePairs(config.OTEL_RESOURCE_ATTRIBUTES ?? ''),
      'service.name': config.OTEL_SERVICE_NAME ?? 'smartqueue-worker',
      'service.version': manifest.version,
    }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  })
  provider.register()
  diag.setLogger(onlyErrors(onError), DiagLogLevel.ERROR)
  const redactor = createRedactor(secretsOf(config))
  const spans = createJobSpans({ tracer: provider.getTracer('smartqueue', manifest.version), ids, redactor })

  const stop = async (): Promise<void> => {
    const timer = AbortSignal.timeout(FLUSH_MS)
    const timeUp = new Promise<void>((resolve) => timer.addEventListener('abort', () => resolve()))
    await Promise.race([provider.shutdown().catch(onError), timeUp])
    for (const api of [trace, context, propagation, diag]) api.disable()
  }

  let stopping: Promise<void> | undefined
  return {
    ...spans,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

const samplerOf = (config: Config): Sampler => {
  const { OTEL_TRACES_SAMPLER: name = DEFAULT_SAMPLER, OTEL_TRACES_SAMPLER_ARG: ratio = '1' } = config
  const root = rootSampler(name, Number(ratio))
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root: followJobs(root) }) : root
}

/** A claim has no parent, but jobs: it is sampled if one of them is. */
const followJobs = (root: Sampler): Sampler => ({
  shouldSample: (...asked) => {
    const [, , name, , , links] = asked
    if (name === CLAIM && links.length > 0) return { decision: SamplingDecision.RECORD_AND_SAMPLED }
    return root.shouldSample(...asked)
  },
  toString: () => `FollowJobs{${root}}`,
})

const rootSampler = (name: SamplerName, ratio: number): Sampler => {
  if (name.endsWith('traceidratio')) return new TraceIdRatioBasedSampler(ratio)
  return name.endsWith('always_on') ? new AlwaysOnSampler() : new AlwaysOffSampler()
}

/** It says an error as JSON, with its stack. */
const messageOf = (said: string): string => {
  try {
    return String(JSON.parse(said).message ?? said)
  } catch {
    return said
  }
}

/** What the SDK has to say: that the receiver could not be reached, above all. */
const onlyErrors = (onError: (error: Error) => void) => {
  const quiet = (): void => {}
  return {
    error: (said: string) => onError(new Error(messageOf(said))),
    warn: quiet,
    info: quiet,
    debug: quiet,
    verbose: quiet,
  }
}
