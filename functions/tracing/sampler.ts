import type { SamplerName } from './otel-settings.ts'
import type { TraceContext } from './traceparent.ts'

/** Whether a span is recorded, and with it what follows from it. */
export type Sampler = (traceId: string, parent: TraceContext | undefined) => boolean

/** As OpenTelemetry's own do it, so that both runtimes decide alike. */
export const createSampler = (name: SamplerName, ratio: number): Sampler => {
  const root = createRoot(name.replace('parentbased_', ''), ratio)
  if (!name.startsWith('parentbased_')) return root
  return (traceId, parent) => parent?.sampled ?? root(traceId)
}

const createRoot = (name: string, ratio: number): ((traceId: string) => boolean) => {
  if (name !== 'traceidratio') return () => name === 'always_on'
  const limit = ratio === 1 ? 0x1_0000_0000 : Math.floor(ratio * 0xffff_ffff)
  return (traceId) => fold(traceId) < limit
}

/** The four words of an id, one over the other: as even as its most random word. */
const fold = (traceId: string): number =>
  [0, 8, 16, 24].reduce((sum, at) => (sum ^ Number.parseInt(traceId.slice(at, at + 8), 16)) >>> 0, 0)
