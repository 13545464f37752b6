import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { waitFor } from './wait-for.ts'

/** A span as it was sent, its attributes laid out. */
export type ReceivedSpan = {
  service: string
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  /** OTLP's: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number
  startMs: number
  endMs: number
  attributes: Record<string, unknown>
  failed: boolean
  links: { traceId: string; spanId: string }[]
}

export type OtlpReceiver = {
  readonly url: string
  readonly spans: ReceivedSpan[]
  /** Values of the header `x-key` of all requests. */
  readonly keys: Set<string | undefined>
  ofTrace(traceId: string): ReceivedSpan[]
  until(traceId: string, ...names: string[]): Promise<ReceivedSpan[]>
  /** Takes requests, and does not answer them until it is released. */
  hold(): void
  release(): void
  stop(): Promise<void>
}

type Value = { stringValue?: string; intValue?: string | number; doubleValue?: number; boolValue?: boolean }
type KeyValues = { key: string; value: Value }[]
type SentSpan = Omit<ReceivedSpan, 'attributes' | 'links'> & {
  attributes?: KeyValues
  links?: { traceId: string; spanId: string }[]
  status?: { code?: number }
  startTimeUnixNano: string
  endTimeUnixNano: string
}
type Sent = {
  resourceSpans: { resource: { attributes: KeyValues }; scopeSpans: { spans: SentSpan[] }[] }[]
}

/** Takes spans over OTLP/HTTP in JSON, as a collector does. */
export const startOtlpReceiver = async (): Promise<OtlpReceiver> => {
  const spans: ReceivedSpan[] = []
  const keys = new Set<string | undefined>()
  let held: PromiseWithResolvers<void> | undefined
  const server = createServer(async (request, response) => {
    keys.add(request.headers['x-key'] as string | undefined)
    if (request.url === '/v1/traces') spans.push(...read((await json(request)) as Sent))
    await held?.promise
    response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': 'application/json' })
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const ofTrace = (traceId: string) => spans.filter((span) => span.traceId === traceId)
  const release = (): void => {
    held?.resolve()
    held = undefined
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    keys,
    ofTrace,
    until: (traceId, ...names) =>
      waitFor(`spans ${names.join(', ')} of ${traceId}`, () => {
        const left = ofTrace(traceId).map(({ name }) => name)
        return (
          names.every((name) => left.splice(left.indexOf(name), left.includes(name) ? 1 : 0).length > 0) &&
          ofTrace(traceId)
        )
      }),
    hold: () => {
      held = Promise.withResolvers()
    },
    release,
    stop: async () => {
      release()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const read = ({ resourceSpans }: Sent): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(layOut(resource.attributes)['service.name'])
    return scopeSpans.flatMap((scope) => scope.spans.map((span) => toReceived(service, span)))
  })

const toReceived = (service: string, span: SentSpan): ReceivedSpan => ({
  service,
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  name: span.name,
  kind: span.kind,
  startMs: Number(span.startTimeUnixNano) / 1e6,
  endMs: Number(span.endTimeUnixNano) / 1e6,
  attributes: layOut(span.attributes ?? []),
  failed: span.status?.code === 2,
  links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
})

const layOut = (pairs: KeyValues): Record<string, unknown> =>
  Object.fromEntries(
    pairs.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue),
    ]),
  )
