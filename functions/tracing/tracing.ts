import type { Bindings } from '../bindings.ts'
import { createExporter, type Exporter } from './exporter.ts'
import { DEFAULT_SAMPLER, parsePairs, tracesUrl } from './otel-settings.ts'
import { createSampler, type Sampler } from './sampler.ts'

/** What an isolate needs to trace its requests. */
export type Tracing = { readonly isSampled: Sampler; readonly exporter: Exporter }

/** Undefined: nobody wants to hear of them. */
export const createTracing = (bindings: Bindings): Tracing | undefined => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: name = 'smartqueue-functions' } = bindings
  if (!endpoint) return undefined
  const { OTEL_TRACES_SAMPLER: sampler = DEFAULT_SAMPLER, OTEL_TRACES_SAMPLER_ARG: ratio = '1' } = bindings
  return {
    isSampled: createSampler(sampler, Number(ratio)),
    exporter: createExporter({
      url: tracesUrl(endpoint),
      headers: parsePairs(bindings.OTEL_EXPORTER_OTLP_HEADERS ?? '') ?? {},
      resource: { ...parsePairs(bindings.OTEL_RESOURCE_ATTRIBUTES ?? ''), 'service.name': name },
    }),
  }
}
